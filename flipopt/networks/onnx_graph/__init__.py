"""ONNX graphs: their protobuf, which tensor holds the scores, and their operators in torch."""
