"""An efficient explorative sampling considering the generative boundaries of deep generative neural networks (Jeon,
Jeong and Choi 2020): E-GBAS."""
