"""I. E.-H. Yen, T.-W. Lin, S.-D. Lin, P. Ravikumar and I. S. Dhillon: Sparse Random Features
Algorithm as Coordinate Descent in Hilbert Space, NIPS 2014."""
