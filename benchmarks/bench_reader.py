"""Reading LIBSVM text: rfx against scikit-learn's load_svmlight_file, in one process, on real files.

`python benchmarks/bench_reader.py [NAME...]` takes the training files of the named data sets (default: ijcnn1, cod-rna,
mnist), fetched when missing; `$RFX_MIRROR` is used. Prints the best of five turns; the peers take turns.
"""

import sys
import time

from rfx import env
from rfx.data import fetch, svmlight, textcache

TURNS = 5


def seconds(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def measure(path):
    """Best seconds of (scikit-learn, rfx without its binary copy, rfx with it), after checking that all agree."""
    from sklearn.datasets import load_svmlight_file

    contenders = {
        "scikit-learn": lambda: load_svmlight_file(str(path)),
        "rfx": lambda: svmlight.read(path, cache=False),
        "rfx, copy": lambda: svmlight.read(path),
    }
    # The copy is made now: a file that was fetched a moment ago would not get one.
    text = svmlight.Text(path)
    textcache.place(path).unlink(missing_ok=True)
    settled, textcache._SETTLED = textcache._SETTLED, -1
    svmlight.read(path)
    textcache._SETTLED = settled
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(TURNS):
        results = {}
        for name, function in contenders.items():
            taken, results[name] = seconds(function)
            best[name] = min(best[name], taken)
    (X, y), *others = results.values()
    for other, labels in others:
        assert (X.shape, X.nnz) == (other.shape, other.nnz) and (X != other).nnz == 0 and (y == labels).all()
    return best, X, len(text.raw)


def main(names):
    print(f"{env.cpu_name()}, {env.threads()} threads; best of {TURNS}")
    print(f"{'file':12} {'MB':>6} {'rows':>8} {'entries':>10} {'sklearn s':>10} {'rfx s':>8} {'ratio':>6} {'copy s':>8} {'ratio':>6}")
    for name in names or ["ijcnn1", "cod-rna", "mnist"]:
        path = fetch.fetch(name, roles=("train",))["train"]
        best, X, size = measure(path)
        theirs, ours, copied = best.values()
        print(
            f"{name:12} {size / 1e6:6.1f} {X.shape[0]:8,} {X.nnz:10,} {theirs:10.3f} {ours:8.4f} {theirs / ours:6.1f} "
            f"{copied:8.4f} {theirs / copied:6.0f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
