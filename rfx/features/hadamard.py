"""Products with structured orthogonal matrices: three rounds of random signs and a Walsh-Hadamard
transform (Yu et al. 2016, section 4).

Block b of p directions, p a power of two, is the matrix (H D1 H D2 H D3) / p^(3/2), which is
orthogonal: H has entries +-1, D1 to D3 are diagonal matrices of signs that depend on (seed, b)
alone. Rows of fewer than p inputs are padded with zeros. A product takes O(p log p) additions for p
directions.

A block of few directions is one of few matrices, and the mean over them is not the kernel: with
p = 4 and 3 inputs it is off by 0.2, with p = 64 by less than 0.001. So p is at least 64.
"""

from rfx.compiled import njit

# Rows that are transformed together.
TOGETHER = 8
# Directions of a block, at least.
LEAST = 64


def padded(n_inputs: int) -> int:
    """The size of a block: the next power of two, at least LEAST."""
    return max(LEAST, 1 << max(0, n_inputs - 1).bit_length())


@njit(cache=True, nogil=True)
def transform(t):
    """t (p, TOGETHER) <- H t, H the Walsh-Hadamard matrix; two levels a pass."""
    size = len(t)
    h, levels = 1, 0
    while 1 << levels < size:
        levels += 1
    if levels % 2:
        for i in range(0, size, 2):
            for r in range(TOGETHER):
                a, b = t[i, r], t[i + 1, r]
                t[i, r], t[i + 1, r] = a + b, a - b
        h = 2
    while h < size:
        for i in range(0, size, 4 * h):
            for j in range(i, i + h):
                for r in range(TOGETHER):
                    a, b, c, d = t[j, r], t[j + h, r], t[j + 2 * h, r], t[j + 3 * h, r]
                    ab, ba, cd, dc = a + b, a - b, c + d, c - d
                    t[j, r], t[j + h, r] = ab + cd, ba + dc
                    t[j + 2 * h, r], t[j + 3 * h, r] = ab - cd, ba - dc
        h *= 4


@njit(cache=True, nogil=True)
def directions(rows, signs, t):
    """t (p, TOGETHER) <- p^(3/2) times the products of rows (n_inputs, TOGETHER) with a block's
    directions; signs: (3, p).
    """
    n_inputs = len(rows)
    for j in range(n_inputs):
        for r in range(TOGETHER):
            t[j, r] = signs[2, j] * rows[j, r]
    t[n_inputs:] = 0.0
    transform(t)
    for k in (1, 0):
        for j in range(len(t)):
            for r in range(TOGETHER):
                t[j, r] *= signs[k, j]
        transform(t)
