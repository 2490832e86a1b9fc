"""Random numbers of feature maps: item j of a stream depends only on (seed, stream, j) (see
rfx.counters).
"""

import numpy as np
from scipy.special import ndtri

from rfx.counters import uniforms


def normals(seed: int, stream: int, start: int, stop: int, width: int) -> np.ndarray:
    """Standard normal numbers for items start..stop-1, (stop-start, width) float64, by the
    inverse distribution.
    """
    found = uniforms(seed, stream, start, stop, width)
    return ndtri(found, out=found)


def cauchys(seed: int, stream: int, start: int, stop: int, width: int) -> np.ndarray:
    """Standard Cauchy numbers for items start..stop-1, (stop-start, width) float64, by the
    inverse distribution.
    """
    return np.tan(np.pi * (uniforms(seed, stream, start, stop, width) - 0.5))
