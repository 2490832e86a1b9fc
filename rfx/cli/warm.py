"""`rfx warm`: compile the inner loops of all methods, once after installation."""

import time

import click

from rfx import lazy, methods
from rfx.errors import RfxError

# Small values of the options that set the amount of work.
_SMALL = {
    "n_features": 32,
    "n_grids": 8,
    "block_size": 100,
    "rounds": 2,
    "batch": 32,
    "epochs": 1,
    "pool": None,
}


@click.command("warm")
def command():
    """Compile all functions in advance, so that later commands start faster.

    Every method is trained on a few generated rows. The machine code is stored in rfx's cache
    ($RFX_CACHE).
    """
    from rfx.data.libsvm import svmtext

    np = lazy.numpy
    random = np.random.default_rng(0)
    X = random.uniform(size=(300, 5))
    labels, values = (
        np.where(X[:, 0] + 0.3 * random.normal(size=300) > X[:, 1], 1.0, -1.0),
        X @ np.arange(5.0),
    )
    begun = time.perf_counter()
    svmtext.parse(b"+1 1:0.5 2:1e-3\n-1 1:12345678901234567890\n", False)
    for name in methods.names():
        options = {key: _SMALL[key] for key in methods.get(name).declared() if key in _SMALL}
        for task, y in (("binary", labels), ("regression", values)):
            _train(methods.create(name, task=task, **options), X, y)
            if name == "rf":
                # with so little memory that features are stored as codes
                _train(
                    methods.create(name, task=task, lam=1.0, max_memory=1, n_features=2000), X, y
                )
        click.echo(f"{name}: {time.perf_counter() - begun:.1f} s so far", err=True)


def _train(trainer, X, y):
    try:
        trainer.fit(X, y).decision_function(X)
    except RfxError:
        # a method without support for this needs no code for it
        return
