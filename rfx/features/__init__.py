"""Random feature maps: `sample(kernel, n_inputs, n_features, seed, **kernel_parameters)`."""

from rfx.features.base import MAPS, FeatureMap, check_variant, sample

__all__ = ["MAPS", "FeatureMap", "check_variant", "sample"]
