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
    # read to the end first, because the checksums follow the last byte
    raw = textfiles.read_plain(path, str(path))
    try:
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is not None and member.name.endswith(ending):
                    return content.read()
    except tarfile.TarError as error:
        raise ValueError(str(error).splitlines()[0]) from None
    raise ValueError(f"no {ending} in the archive")


def _matlab(file, *names: str) -> list:
    """The variables of these names in a MATLAB file, a path or a binary handle."""
    try:
        saved = lazy.scipy_io.loadmat(file, variable_names=names)
    except Exception as error:  # exceptions of the parser for a damaged file
        raise ValueError(f"not a MATLAB file: {error}") from None
    return [saved[name] for name in names]


def cpu(paths, handle, part):
    """Rahimi & Recht's cpu.mat, whose columns are the rows."""
    content = io.BytesIO(_member(paths[0], "cpu.mat"))
    columns, targets = _matlab(content, f"X{part}", f"y{part}")
    X = scipy.sparse.csr_matrix(columns.T, dtype=np.float64)
    y = np.asarray(targets, np.float64).ravel()
    libsvm.write_rows(handle, X.toarray(), y)


def rcv1_ccat(paths, handle):
    """RCV1-v2: a file of `topic document 1` lines, then files of vectors whose label is the
    document's number.
    """
    with textfiles.open_plain(paths[0]) as lines:
        topics = (line.split() for line in lines)
        members = [float(words[1]) for words in topics if words[:1] == [b"CCAT"]]
    for path in paths[1:]:
        X, documents = libsvm.read(path)
        is_member = np.isin(documents, members)
        libsvm.write_rows(handle, X, np.where(is_member, 1.0, -1.0))


def buzz(paths, handle):
    """UCI's classification.tar.gz: 77 numbers and the label 0 or 1 per line, separated by
    commas.
    """
    content = _member(paths[0], "Twitter-Absolute-Sigma-500.data")
    _write_numbers(io.BytesIO(content), handle)


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
        text = io.TextIOWrapper(source, "utf-8")
        rows, attributes = lazy.scipy_io.arff.loadarff(text)
    *inputs, target = attributes.names()
    columns = []
    for name in inputs:
        kind, _ = attributes[name]
        columns.append(_arff_column(rows[name], kind == "nominal"))
    _, classes = np.unique(rows[target], return_inverse=True)
    libsvm.write_rows(handle, np.column_stack(columns), classes)


def _arff_column(cells: np.ndarray, is_nominal: bool) -> np.ndarray:
    """Numbers (n,) of a column, or (n, k) for k > 2 words."""
    if not is_nominal:
        return cells.astype(np.float64)
    words, codes = np.unique(cells, return_inverse=True)
    return codes.astype(np.float64) if len(words) <= 2 else np.eye(len(words))[codes]


def _molecules(path) -> tuple[np.ndarray, np.ndarray]:
    """qm7.mat: Coulomb matrices X (n, 23, 23) and energies T; or qm7.npz: charges,
    positions in Angstrom and energies.
    """
    with open(path, "rb") as file:
        packed = file.read(4) == b"PK\x03\x04"
    if packed:
        saved = np.load(path)
        matrices = virtual.coulomb(saved["charges"], saved["positions"])
        return matrices, saved["energies"].astype(np.float64)
    matrices, energies = _matlab(path, "X", "T")
    return np.asarray(matrices, np.float64), np.asarray(energies, np.float64).ravel()


def molecules(paths, handle, describe):
    """Molecules as descriptions of their Coulomb matrices."""
    matrices, energies = _molecules(paths[0])
    described = describe(matrices).astype(np.float32)
    libsvm.write_rows(handle, described, energies)


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
