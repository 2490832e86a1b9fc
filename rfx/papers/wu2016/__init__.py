"""L. Wu, I. E.-H. Yen, J. Chen and R. Yan: Revisiting Random Binning Features: Fast Convergence and
Strong Parallelizability, KDD 2016."""
