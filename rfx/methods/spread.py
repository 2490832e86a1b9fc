"""Which methods learn from rows that lie on the workers of a cluster, and which of their options go with that."""

from rfx.errors import UsageError

# Solvers whose vectors over the rows may lie on workers.
_SOLVERS = (None, "rfx", "cg")


def able(method) -> bool:
    """Whether a method, or its class, says by `spreads` that it learns from rows on workers."""
    return getattr(method, "spreads", False)


def check(method) -> None:
    """Refuse, with a UsageError, a method or options that need all rows in one process."""
    from rfx import methods

    p = method.params
    if not able(method):
        others = ", ".join(name for name in methods.METHODS.own() if able(methods.get(name)))
        raise UsageError(f"method {method.name} needs all rows in one process; over rows on several machines there are {others}")
    if p.get("solver") not in _SOLVERS:
        raise UsageError(f"--solver is {p['solver']}, which needs all rows in one process; choose rfx")
    for name in method.searched:
        if isinstance(p.get(name), str) and (name != "gamma" or p[name] == "validation") and not (name == "lam" and p.get("lam_path")):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} is {p[name]}, which needs rows in one process; give a number, such as one found on some of the rows")
    for name in ("class_weight", "grow"):
        if p.get(name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} is {p[name]}, which needs all rows in one process; leave it out")
