"""B. Dai, B. Xie, N. He, Y. Liang, A. Raj, M.-F. Balcan and L. Song: Scalable Kernel Methods via
Doubly Stochastic Gradients, NIPS 2014."""
