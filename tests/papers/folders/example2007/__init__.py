"""A. Author and B. Author: Random Features by Example, NIPS 2007."""
