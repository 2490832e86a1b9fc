"""Convert the published formats of data sets to LIBSVM text.

A converter receives the paths of a file's sources, in the order of `datasets.toml`, and a binary
handle for the output. It may raise KeyError, ValueError, DataError or OSError for unexpected
sources.
"""

import io
import tarfile
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse

from rfx import lazy
from rfx.data import libsvm, textfiles, virtual


def _member(path, ending) -> bytes:
    """The content of the one file in a tar archive whose name has this ending."""
    try:
        # read to the end first, because the checksums follow the last byte
        with tarfile.open(fileobj=io.BytesIO(textfiles.read_plain(path, str(path)))) as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is not None and member.name.endswith(ending):
                    return content.read()
    except tarfile.TarError as error:
        raise ValueError(str(error).splitlines()[0]) from None
    raise ValueError(f"no {ending} in the archive")


def _matlab(file, names) -> dict:
    """The variables of these names in a MATLAB file, a path or a binary handle."""
    try:
        return lazy.scipy_io.loadmat(file, variable_names=names)
    except Exception as error:  # exceptions of the parser for a damaged file
        raise ValueError(f"not a MATLAB file: {error}") from None


def cpu(paths, handle, part):
    """Rahimi & Recht's cpu.mat, whose columns are the rows."""
    saved = _matlab(io.BytesIO(_member(paths[0], "cpu.mat")), [f"X{part}", f"y{part}"])
    X = scipy.sparse.csr_matrix(saved[f"X{part}"].T, dtype=np.float64)
    libsvm.write_rows(handle, X.toarray(), np.asarray(saved[f"y{part}"], np.float64).ravel())


def rcv1_ccat(paths, handle):
    """RCV1-v2: a file of `topic document 1` lines, then files of vectors whose label is the
    document's number.
    """
    with textfiles.open_plain(paths[0]) as lines:
        words = (line.split() for line in lines)
        members = np.array(
            [int(line[1]) for line in words if line and line[0] == b"CCAT"], np.float64
        )
    for path in paths[1:]:
        X, documents = libsvm.read(path)
        libsvm.write_rows(handle, X, np.where(np.isin(documents, members), 1.0, -1.0))


def buzz(paths, handle):
    """UCI's classification.tar.gz: 77 numbers and the label 0 or 1 per line, separated by
    commas.
    """
    _write_numbers(io.BytesIO(_member(paths[0], "Twitter-Absolute-Sigma-500.data")), handle)


def comma_separated(paths, handle):
    """Numbers without a header, of which the last is the target."""
    with textfiles.open_plain(paths[0]) as lines:
        _write_numbers(lines, handle)


def _write_numbers(lines, handle) -> None:
    table = np.loadtxt(lines, delimiter=",")
    libsvm.write_rows(handle, table[:, :-1], table[:, -1])


def arff(paths, handle):
    """Attributes of Weka, of which the last is the class: its words become 0, 1, … in ascending
    order, two words of another attribute 0 and 1, and more a 0/1 column each.
    """
    with textfiles.open_plain(paths[0]) as source:
        rows, attributes = lazy.scipy_io.arff.loadarff(io.TextIOWrapper(source, "utf-8"))
    *inputs, target = attributes.names()
    columns = [_arff_column(rows[name], attributes[name][0] == "nominal") for name in inputs]
    _, classes = np.unique(rows[target], return_inverse=True)
    libsvm.write_rows(handle, np.column_stack(columns), classes)


def _arff_column(cells: np.ndarray, is_nominal: bool) -> np.ndarray:
    """Numbers (n,) of a column, or (n, k) for k > 2 words."""
    if not is_nominal:
        return cells.astype(np.float64)
    words, codes = np.unique(cells, return_inverse=True)
    return codes.astype(np.float64) if len(words) <= 2 else np.eye(len(words))[codes]


def _molecules(path) -> tuple:
    """qm7.mat: Coulomb matrices X (n, 23, 23) and energies T; or qm7.npz: charges,
    positions in Angstrom and energies.
    """
    with open(path, "rb") as file:
        packed = file.read(4) == b"PK\x03\x04"
    if packed:
        saved = np.load(path)
        matrices = virtual.coulomb(saved["charges"], saved["positions"])
        return matrices, saved["energies"].astype(np.float64)
    saved = _matlab(path, ["X", "T"])
    return np.asarray(saved["X"], np.float64), np.asarray(saved["T"], np.float64).ravel()


def molecules(paths, handle, describe):
    """Molecules as descriptions of their Coulomb matrices."""
    matrices, energies = _molecules(paths[0])
    libsvm.write_rows(handle, describe(matrices).astype(np.float32), energies)


def _sorted_triangles(matrices):
    """The upper triangles, rows and columns ordered by their norms."""
    return virtual.triangles(virtual.by_row_norm(matrices))


CONVERTERS: dict[str, Callable] = {
    "cpu_train": partial(cpu, part="train"),
    "cpu_test": partial(cpu, part="test"),
    "rcv1_ccat": rcv1_ccat,
    "buzz": buzz,
    "comma_separated": comma_separated,
    "arff": arff,
    "coulomb": partial(molecules, describe=_sorted_triangles),
    "eigenvalues": partial(molecules, describe=virtual.eigenvalues),
    "bags": partial(molecules, describe=virtual.bags_of_bonds),
}
