"""LIBSVM text out of the other formats that data sets are published in.

A converter takes the paths of a file's sources, in the order of `datasets.toml`, and a binary handle to write to. It may
raise KeyError, ValueError, DataError or OSError for sources that are not what it expects.
"""

import io
import tarfile

import numpy as np

from rfx.data import archives, svmlight


def _member(path, ending) -> bytes:
    """The content of the one file in a tar archive whose name ends so."""
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(ending):
                    return archive.extractfile(member).read()
    except tarfile.TarError as error:
        raise ValueError(str(error).splitlines()[0]) from None
    raise ValueError(f"no {ending} in the archive")


def _matlab(file) -> dict:
    """The variables of a MATLAB file, a path or a binary handle."""
    import scipy.io

    try:
        return scipy.io.loadmat(file)
    except Exception as error:  # whatever a damaged file makes of the parser's inside
        raise ValueError(f"no MATLAB file: {error}") from None


def _cpu(paths, handle, part):
    """Rahimi & Recht's cpu.mat: rows are columns there."""
    import scipy.sparse

    saved = _matlab(io.BytesIO(_member(paths[0], "cpu.mat")))
    X = scipy.sparse.csr_matrix(saved[f"X{part}"].T, dtype=np.float64)
    svmlight.write_rows(handle, X.toarray(), np.asarray(saved[f"y{part}"], np.float64).ravel())


def cpu_train(paths, handle):
    _cpu(paths, handle, "train")


def cpu_test(paths, handle):
    _cpu(paths, handle, "test")


def rcv1_ccat(paths, handle):
    """RCV1-v2: a file of `topic document 1` lines, then files of vectors whose label is the document's number."""
    with archives.open_plain(paths[0]) as lines:
        words = (line.split() for line in lines)
        members = np.array([int(line[1]) for line in words if line and line[0] == b"CCAT"], np.float64)
    for path in paths[1:]:
        X, documents = svmlight.read(path, cache=False)
        svmlight.write_rows(handle, X, np.where(np.isin(documents, members), 1.0, -1.0))


def buzz(paths, handle):
    """UCI's classification.tar.gz: 77 numbers and the label 0 or 1 a line, separated by commas."""
    table = np.loadtxt(io.BytesIO(_member(paths[0], "Twitter-Absolute-Sigma-500.data")), delimiter=",")
    svmlight.write_rows(handle, table[:, :-1], table[:, -1])


def coulomb(paths, handle):
    """qm7.mat: Coulomb matrices X (n, 23, 23) and energies T; rows and columns are put in the order of their norms."""
    saved = _matlab(paths[0])
    matrices, energies = np.asarray(saved["X"], np.float64), np.asarray(saved["T"], np.float64).ravel()
    order = np.argsort(-np.linalg.norm(matrices, axis=2), axis=1, kind="stable")
    matrices = np.take_along_axis(np.take_along_axis(matrices, order[:, :, None], 1), order[:, None, :], 2)
    upper = np.triu_indices(matrices.shape[1])
    svmlight.write_rows(handle, matrices[:, upper[0], upper[1]].astype(np.float32), energies)


CONVERTERS = {"cpu_train": cpu_train, "cpu_test": cpu_test, "rcv1_ccat": rcv1_ccat, "buzz": buzz, "coulomb": coulomb}
