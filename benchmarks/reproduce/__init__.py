"""The papers' figures beside ours: ``python -m benchmarks reproduce NAME | all [--quick]``.

001 is R. Yousefzadeh and D. P. O'Leary, Investigating decision boundaries of trained neural networks (2019), and 002
their Deep learning interpretation: flip points and homotopy methods (2020); 000 and 003 are named in their packages. A
study is a function that takes a :class:`~benchmarks.reproduce.desk.Desk` and returns a
:class:`~benchmarks.reproduce.record.Record`; the page docs/explanation/reproduction.md is written from the records'
JSON alone.
"""
