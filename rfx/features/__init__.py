"""Random feature maps: `sample(kernel, n_inputs, n_features, seed, **kernel_parameters)`."""

from rfx.features.base import ALIASES, MAPS, FeatureMap, find, form_of, sample

__all__ = ["ALIASES", "MAPS", "FeatureMap", "find", "form_of", "sample"]
