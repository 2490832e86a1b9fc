"""Doubly stochastic gradients and dual coordinate ascent against plain code and other libraries, in
turns, with one thread.

step: one step with batch and block size 1,024 after 50 earlier blocks, against numpy (its
generator, float64 cosines) and PyTorch on the CPU (its generator, float32). Both peers draw the
earlier features again. sdca: r-sdca stops at the suboptimality that LIBLINEAR's dual solver (-s 3,
hinge, no bias) reaches on the same 256 features, both in memory. held: passes over adult's rows
with blocks that are revisited, whose features are stored or recomputed; both must give the same
coefficients. error: doubly-sgd and scikit-learn's RBFSampler + SGDClassifier after equal processor
seconds; `choose` shows how the settings of both were chosen.

    python benchmarks/bench_doubly.py [--parts step sdca held error choose] \
        [--data covtype mnist-8vs6] [--seconds 8] [--pairs 3]
"""

import argparse

import numpy as np
import scipy.sparse as sp
from numba import njit
from pairs import add_pairs, machine, ratios, spread, timed, turns

from rfx import data, env, losses, methods
from rfx.features import sample
from rfx.features.base import GrowingMap
from rfx.solvers.stochastic.doubly import Blocks, DoublySGD
from rfx.solvers.stochastic.gradient import Descent, Steps
from rfx.solvers.stochastic.sdca import LinearSDCA

EARLIER, BATCH, BLOCK, INPUTS = 50, 1024, 1024, 50
INPUTS_OF = {
    "covtype": {"scaling": "minmax01", "gamma": 8.0, "nu": 1e-7},
    "mnist-8vs6": {
        "scaling": "none",
        "unit": True,
        "pca": 50,
        "pca_centred": False,
        "gamma": 1.0,
        "nu": 1e-7,
    },
}
# constant steps, as in the plans (the paper uses theta/t); preconditioned steps on fresh blocks, as
# in the authors' Matlab program; the settings of the peer
PLAIN = {
    "covtype": {"loss": "hinge", "batch": 1024, "block": 256, "step0": 16.0},
    "mnist-8vs6": {"loss": "hinge", "batch": 1024, "block": 256, "step0": 8.0},
}
PRECONDITIONED = [
    {
        "loss": loss,
        "batch": batch,
        "block": batch // 4,
        "precondition": True,
        "damping": 1e-4,
        "step0": 0.25,
    }
    for loss in ("hinge", "squared_hinge")
    for batch in (1024, 2048, 4096)
]
PEERS = [{"alpha": alpha} for alpha in (1e-6, 1e-5, 1e-4)]
# by choose() with 8 seconds
CHOSEN = {"covtype": PRECONDITIONED[2], "mnist-8vs6": PRECONDITIONED[4]}
PEER = {"covtype": PEERS[1], "mnist-8vs6": PEERS[0]}


def ours(X, Y, max_memory_mb):
    """A step after EARLIER blocks whose features are recomputed; max_memory_mb: for stored
    frequencies.
    """
    growing = GrowingMap("gaussian", INPUTS, 0, {"gamma": 0.1}, max_memory_mb=max_memory_mb)
    descent = Descent(Steps("constant", step0=1.0))
    solver = DoublySGD(growing, 1, losses.get_loss("hinge"), 1e-6, descent, Blocks(BLOCK))
    for _ in range(EARLIER):
        solver.step(X[:8], Y[:8])
    start = solver.state()

    def run():
        solver.restore(start)
        return solver.step(X, Y)

    return run


def by_numpy(X, Y):
    X, alpha = X.astype(np.float64), np.ones((EARLIER, BLOCK))

    def features(i):
        rng = np.random.default_rng(i)
        return np.sqrt(2) * np.cos(
            X @ (np.sqrt(0.2) * rng.standard_normal((INPUTS, BLOCK)))
            + rng.uniform(0, 2 * np.pi, BLOCK)
        )

    def run():
        f = sum(features(i) @ alpha[i] for i in range(EARLIER))
        return features(EARLIER).T @ np.where(Y[:, 0] * f < 1, -Y[:, 0], 0.0) / (BATCH * BLOCK)

    return run


def by_torch(X, Y):
    """None if PyTorch is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(env.threads())
    rows, signs, alpha = (
        torch.from_numpy(X),
        torch.from_numpy(Y[:, 0].astype(np.float32)),
        torch.ones(EARLIER, BLOCK),
    )

    def features(i):
        draw = torch.Generator().manual_seed(i)
        W = 0.2**0.5 * torch.randn(INPUTS, BLOCK, generator=draw)
        return 2**0.5 * torch.cos(rows @ W + 2 * torch.pi * torch.rand(BLOCK, generator=draw))

    def run():
        f = sum(features(i) @ alpha[i] for i in range(EARLIER))
        return features(EARLIER).T @ torch.where(signs * f < 1, -signs, 0.0) / (BATCH * BLOCK)

    return run


def step(pairs):
    rng = np.random.default_rng(0)
    X, Y = (
        rng.standard_normal((BATCH, INPUTS)).astype(np.float32),
        np.sign(rng.standard_normal((BATCH, 1))),
    )
    runs = {
        "rfx, frequencies kept": ours(X, Y, 256),
        "rfx, all recomputed": ours(X, Y, 1e-9),
        "numpy, float64": by_numpy(X, Y),
        "PyTorch, float32": by_torch(X, Y),
    }
    runs = {name: run for name, run in runs.items() if run is not None}
    for run in runs.values():
        run()
    rows = turns(runs, lambda name: timed(runs[name]), pairs)
    print(
        "| step | processor s | times rfx's, kept | times rfx's, recomputed |\n|---|---:|---:|---:|"
    )
    kept, again = (rows[name] for name in list(runs)[:2])
    for name, found in rows.items():
        cpu = spread([row["cpu"] for row in found], ".3f")
        print(f"| {name} | {cpu} | {ratios(found, kept, 'cpu')} | {ratios(found, again, 'cpu')} |")


@njit
def shuffle(order, state):
    """Shuffle `order` with a linear congruential generator and return its next state. It replaces
    C's rand(), which LIBLINEAR calls.
    """
    for i in range(len(order) - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = ((state >> np.uint64(33)) * np.uint64(i + 1)) >> np.uint64(31)
        order[i], order[j] = order[j], order[i]
    return state


def sdca(pairs, n=20_000, count=256, nu=1e-4):
    """On adult's first rows. LIBLINEAR minimises C sum L + ||w||^2/2 with C = 1/(nu n); its seconds
    are those of train() alone.
    """
    from liblinear.liblinearutil import parameter, problem, train

    split = data.load("a9a", split="dai2014")
    X, y = split.X_train[:n].toarray().astype(np.float32), split.y_train[:n]
    Z = sample("gaussian", X.shape[1], count, 0, gamma=0.03).transform(X) / np.float32(
        np.sqrt(count)
    )
    hinge, Y, rows = losses.get_loss("hinge"), y[:, None], np.arange(n)
    copied = problem(y, sp.csr_matrix(Z.astype(np.float64)))

    def liblinear(eps):
        return train(copied, parameter(f"-s 3 -c {1 / (nu * n)!r} -e {eps} -q"))

    def ours(target):
        """Passes, primal and dual at a gap of at most target. The gap is computed once the losses
        of a pass suggest that it is small enough.
        """

        # the features are stored: a step receives the rows' numbers
        def features(taken):
            return Z if taken is rows else Z.take(taken, axis=0)

        solver, order, state, due = (
            LinearSDCA(features, count, 1, n, hinge, nu),
            rows.copy(),
            np.uint64(0),
            1,
        )
        while True:
            state = shuffle(order, state)
            promised = (
                solver.step(order, Y.take(order, axis=0), order)
                + nu * float((solver.w**2).sum())
                - float((solver.a * Y).mean())
            )
            if promised <= target and solver.t >= due:
                upper, lower = solver.bounds([(rows, Y, rows)])
                if upper - lower <= target:
                    return solver.t, upper, lower
                due = int(1.1 * solver.t) + 1

    best = ours(1e-7)[2]
    heads = (
        "a9a, 256 features",
        "processor s",
        "times r-sdca's",
        "primal",
        "above the best dual",
        "gap",
        "passes",
    )
    print("\n| " + " | ".join(heads) + " |\n|---|---:|---:|---:|---:|---:|---:|")
    for eps in (0.1, 0.01, 0.001):
        w = np.array(liblinear(eps).get_decfun()[0])
        primal = float(0.5 * nu * w @ w + np.maximum(0, 1 - y * (Z @ w)).mean())
        runs = {
            f"LIBLINEAR -s 3 -e {eps}": lambda eps=eps: liblinear(eps),
            "r-sdca to that gap": lambda target=primal - best: ours(target),
        }
        found = turns(runs, lambda name, runs=runs: timed(runs[name]), pairs)
        peer, mine = found.values()
        passes, upper, lower = mine[0]["result"]
        seconds = [spread([row["cpu"] for row in one], ".3f") for one in (peer, mine)]
        peer_name, name = found
        print(
            f"| {peer_name} | {seconds[0]} | {ratios(peer, mine, 'cpu')} | {primal:.6f} |"
            f" {primal - best:.1e} | | |"
        )
        print(
            f"| {name} | {seconds[1]} | 1 | {upper:.6f} | {upper - best:.1e} | {upper - lower:.1e}"
            f" | {passes} |"
        )


class Doubly:
    """doubly-sgd; scaling and other data-dependent settings are learnt from all rows X, y before
    the clock starts.
    """

    def __init__(self, options, X, y):
        self.name = f"doubly-sgd {words(options)}"
        self.batch = options["batch"]
        self.session = methods.create("doubly-sgd", task="binary", **options).session()
        self.session.learn(lambda: iter([(X, y)]))
        self.session.start(True)

    @property
    def learned(self):
        """What a first pass over the rows determined."""
        return self.session.learned

    def train(self, X, y):
        self.session.advance(X, y, None, None)

    def predict(self, X):
        rows = self.learned.inputs.transform(X)
        session = self.session
        values = session.method.predict(session.solver, rows)[:, 0]
        return session.learned.preprocessing.labels(values)


class Peer:
    """scikit-learn's pipeline on the same inputs with the same gamma."""

    batch = 1024

    def __init__(self, inputs, options, y):
        from sklearn.kernel_approximation import RBFSampler
        from sklearn.linear_model import SGDClassifier

        self.name, self.classes = f"RBFSampler(1000) + SGDClassifier {words(options)}", np.unique(y)
        self.transform, n_inputs = inputs.inputs.transform, inputs.sample.shape[1]
        # float32, like the rows: float64 takes three times as long
        rows = np.zeros((1, n_inputs), np.float32)
        self.sampler = RBFSampler(
            gamma=inputs.kernel_params["gamma"], n_components=1000, random_state=0
        ).fit(rows)
        self.model = SGDClassifier(**options, random_state=0)

    def train(self, X, y):
        self.model.partial_fit(self.sampler.transform(self.transform(X)), y, classes=self.classes)

    def predict(self, X):
        return self.model.predict(self.sampler.transform(self.transform(X)))


def held(pairs, passes=(2, 3, 5, 10), blocks=8, block=512):
    """The squared hinge on adult: whole runs of a given number of passes."""
    split = data.load("a9a", split="dai2014")
    X, Y = split.X_train.toarray().astype(np.float32), split.y_train[:, None]
    descent = Descent(Steps("constant", step0=0.25), precondition=True, damping=1e-4)

    def run(hold, count):
        growing = GrowingMap("gaussian", X.shape[1], 0, {"gamma": 0.03}, variant="pairs")
        given = Blocks(block, blocks, hold_rows=len(X) if hold else None)
        solver = DoublySGD(
            growing,
            1,
            losses.get_loss("squared_hinge"),
            1e-6,
            descent,
            given,
        )
        for number in range(count):
            order = np.random.default_rng(number).permutation(len(X))
            for start in range(0, len(X), BATCH):
                part = order[start : start + BATCH]
                solver.step(X[part], Y[part], part)
        return solver.expansion.coefficients.predicting

    if not np.array_equal(run(True, 2), run(False, 2)):
        raise SystemExit("stored features differ from recomputed ones")
    print(
        f"\n| {blocks} blocks of {block}, {len(X):,} rows | recomputed, processor s | held | times"
        " |\n|---|---:|---:|---:|"
    )
    for count in passes:
        found = turns(
            {"again": False, "held": True},
            lambda name, count=count: timed(lambda: run(name == "held", count)),
            pairs,
        )
        cpu = [spread([row["cpu"] for row in rows], ".2f") for rows in found.values()]
        print(
            f"| {count} passes | {cpu[0]} | {cpu[1]} |"
            f" {ratios(found['again'], found['held'], 'cpu')} |"
        )


def words(options):
    return ", ".join(
        f"{name} {value}"
        for name, value in options.items()
        if name not in INPUTS_OF["covtype"] | INPUTS_OF["mnist-8vs6"]
    )


def race(learners, X, y, X_out, y_out, seconds):
    """Error in percent on X_out, y_out, and the number of rows that each learner has used after its
    processor seconds. The learner that has used the least time runs next.
    """
    draws, spent, seen = (
        [np.random.default_rng(0) for _ in learners],
        [0.0] * len(learners),
        [0] * len(learners),
    )
    while min(spent) < seconds:
        k = int(np.argmin(spent))
        own = draws[k].integers(0, len(y), learners[k].batch)
        part = X[own], y[own]
        spent[k] += timed(lambda k=k, part=part: learners[k].train(*part))["cpu"]
        seen[k] += len(own)

    def wrong(learner):
        parts = [slice(first, first + 8192) for first in range(0, len(y_out), 8192)]
        return 100 * float(
            np.mean(np.concatenate([learner.predict(X_out[part]) for part in parts]) != y_out)
        )

    return [(learner.name, wrong(learner), rows) for learner, rows in zip(learners, seen)]


def pair(name, X, y, ours, peers):
    mine = [Doubly(INPUTS_OF[name] | options, X, y) for options in ours]
    return [*mine, *(Peer(mine[0].learned, options, y) for options in peers)]


def table(title, found):
    print(f"\n| {title} | error | rows |\n|---|---:|---:|")
    for name, wrong, seen in found:
        print(f"| {name} | {wrong:.2f} % | {seen:,} |", flush=True)


def choose(names, seconds):
    """The candidates, evaluated on a held-out fifth of the training rows (at most 20,000). CHOSEN
    was chosen by these errors.
    """
    for name in names:
        split = data.load(name, split="dai2014")
        order = np.random.default_rng(7).permutation(len(split.y_train))
        out, kept = np.split(order, [min(20_000, len(order) // 5)])
        X, y = split.X_train[kept], split.y_train[kept]
        learners = pair(name, X, y, [PLAIN[name], *PRECONDITIONED], PEERS)
        found = race(learners, X, y, split.X_train[out], split.y_train[out], seconds)
        table(f"{name}, held-out training rows, {seconds:g} processor s", found)


def error(names, seconds):
    for name in names:
        split = data.load(name, split="dai2014")
        X, y = split.X_train, split.y_train
        found = race(
            pair(name, X, y, [PLAIN[name], CHOSEN[name]], [PEER[name]]),
            X,
            y,
            split.X_test,
            split.y_test,
            seconds,
        )
        table(f"{name}, test rows, {seconds:g} processor s", found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--parts",
        nargs="+",
        default=["step", "sdca", "error"],
        choices=("step", "sdca", "held", "error", "choose"),
    )
    parser.add_argument(
        "--data", nargs="+", default=["covtype", "mnist-8vs6"], choices=("covtype", "mnist-8vs6")
    )
    parser.add_argument("--seconds", type=float, default=8)
    add_pairs(parser)
    given = parser.parse_args()
    env.set_threads(1)
    print(f"{machine()}\n")
    if "step" in given.parts:
        step(given.pairs)
    if "sdca" in given.parts:
        sdca(given.pairs)
    if "held" in given.parts:
        held(given.pairs)
    if "choose" in given.parts:
        choose(given.data, given.seconds)
    if "error" in given.parts:
        error(given.data, given.seconds)


if __name__ == "__main__":
    main()
