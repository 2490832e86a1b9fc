"""Methods as model files: what of one is written, and how it is made again from a header and arrays."""

import numpy as np

from rfx import kernels, losses
from rfx import model as model_file
from rfx.data.scaling import Scaler, TargetScaler
from rfx.data.schema import Schema
from rfx.errors import DataError
from rfx.methods.calibration import Calibration

CLASSIFICATION = ("binary", "multiclass")


class Saved:
    """What a Method does with model files; which arrays it has, and what is in them, is the method's own (`arrays`, `_state`)."""

    arrays: dict[str, model_file.Array] = {
        "scaler_shift": model_file.Array("f", "inputs"),
        "scaler_scale": model_file.Array("f", "inputs"),
        "classes": model_file.Array("f", "classes"),
    }

    def save(self, path, **more) -> int:
        """Write the model file (see rfx.model), or nothing where path is None; returns its size in bytes.

        more: entries of the header for whoever reads them again.
        """
        header, arrays = self._state()
        header |= more | {
            "method": self.name,
            "params": self.params,
            "task": self.task,
            "loss": self.loss.name,
            "info": self.info,
            "target_scaler": None if self.target_scaler is None else self.target_scaler.to_dict(),
            "scaling": self.params["scaling"],
            "plugins": self._plugins(),
            "schema": None if self.schema is None else self.schema.to_dict(),
        }
        if self.calibration is not None:
            header["calibration"] = self.calibration.to_dict()
        scaler = self.scaler.to_dict()
        header["scaler"] = {key: value for key, value in scaler.items() if not isinstance(value, np.ndarray)}
        arrays |= {f"scaler_{key}": value for key, value in scaler.items() if isinstance(value, np.ndarray)}
        if self.classes is not None:
            arrays["classes"] = self.classes
        return model_file.write(path, header, arrays)

    def _plugins(self) -> list[dict]:
        """What of this comes from other packages, and which: kind, name, package."""
        from rfx.methods import METHODS

        used = [(METHODS, self.name), *((kernels.KERNELS, name) for name in [self.params.get("kernel")] if name)]
        found = [{"kind": known.kind, "name": name, "package": known.package_of(name)} for known, name in used]
        return [plugin for plugin in found if plugin["package"]]

    @classmethod
    def saved_arrays(cls, header: dict) -> dict[str, model_file.Array]:
        """What the arrays of a model file with that header must be, by name."""
        return cls.arrays

    @classmethod
    def from_file(cls, file: model_file.File) -> "Saved":
        """The method of an open model file; only the arrays that it declares are read, once their shapes fit.

        Raises DataError, or KeyError for what is missing, where that would fail or predict nonsense.
        """
        forms, declared = file.forms(), cls.saved_arrays(file.header)
        model_file.check_forms(forms, declared, cls._sizes(file.header, forms))
        return cls.from_state(file.header, file.arrays(declared))

    @staticmethod
    def _sizes(header, arrays) -> dict[str, int]:
        """The sizes of axes that the header and the labels say."""
        if header["task"] not in (*CLASSIFICATION, "regression"):
            raise DataError(f"its task is {header['task']!r:.40}")
        sizes = {"inputs": header["info"]["n_inputs"], "outputs": 1}
        if type(sizes["inputs"]) is not int or sizes["inputs"] < 0:
            raise DataError(f"its number of inputs is {sizes['inputs']!r:.40}")
        if header["task"] in CLASSIFICATION:
            (count,) = arrays["classes"].shape
            if not count:
                raise DataError("it has no classes")
            sizes["outputs"] = count if count > 2 else 1
        return sizes

    @classmethod
    def from_state(cls, header, arrays) -> "Saved":
        """The method of a model file's header and arrays; raises as from_file does."""
        sizes = cls._sizes(header, arrays)
        model_file.check_arrays(arrays, cls.saved_arrays(header), sizes)
        self = cls(**header["params"])
        self.task, self.info, self.loss = header["task"], header["info"], losses.get_loss(header["loss"])
        scaler = header["scaler"] | {key[7:]: value for key, value in arrays.items() if key.startswith("scaler_")}
        self.scaler = Scaler.from_dict(scaler)
        self.target_scaler = TargetScaler.from_dict(header["target_scaler"], sizes["outputs"]) if self.task == "regression" else None
        self.classes = None if self.task == "regression" else arrays["classes"]
        if header.get("calibration") is not None:
            self.calibration = Calibration.from_dict(header["calibration"], sizes["outputs"])
        self.schema = Schema.of_header(header)
        self._restore(header, arrays)
        return self
