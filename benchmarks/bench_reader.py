"""Reading LIBSVM text: rfx against scikit-learn's load_svmlight_file, in one process, in turns, on
real files.

The files are the training files of the named data sets (default: ijcnn1, cod-rna, mnist). Missing
ones are fetched, from `$RFX_MIRROR` if it is set.

    python benchmarks/bench_reader.py [NAME...] [--pairs 5]
"""

import argparse

from pairs import add_pairs, machine, ratios, spread, timed, turns

from rfx.data import libsvm, registry, textfiles


def measure(path, pairs):
    """Rows of (rfx, scikit-learn), and the size of the text; both must read the same values."""
    from sklearn.datasets import load_svmlight_file

    contenders = {
        "rfx": lambda: libsvm.read(path),
        "scikit-learn": lambda: load_svmlight_file(str(path)),
    }
    size = len(textfiles.read_plain(path, str(path)))
    (X, y), *others = (function() for function in contenders.values())
    for other, labels in others:
        assert (
            (X.shape, X.nnz) == (other.shape, other.nnz)
            and (X != other).nnz == 0
            and (y == labels).all()
        )
    # free the arrays before the next turn
    return turns(contenders, lambda name: timed(contenders[name]) | {"result": None}, pairs), size


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=["ijcnn1", "cod-rna", "mnist"])
    add_pairs(parser)
    given = parser.parse_args()
    print(f"{machine()}\n")
    print(
        "| data | MB | reader | seconds | CPU seconds | times rfx | in CPU seconds"
        " |\n|---|---|---|---|---|---|---|"
    )
    for name in given.names:
        found, size = measure(registry.fetch(name, roles=("train",))["train"], given.pairs)
        for reader, rows in found.items():
            seconds, cpu = (
                spread([row[kind] for row in rows], ".3g") for kind in ("seconds", "cpu")
            )
            times = " | ".join(
                ratios(rows, found["rfx"], kind, ".3g") for kind in ("seconds", "cpu")
            )
            print(
                f"| {name} | {size / 1e6:.1f} | {reader} | {seconds} | {cpu} | {times} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
