"""The surface of `rfx tune`: the score over bandwidth and lambda, a panel for each method and kernel."""

import numpy as np

from rfx.errors import DataError
from rfx.records.result import having
from rfx.reporting import style


def surface(rows, setting=None):
    """The scores of the last round that a method and kernel reached, at its size with the most trials; the best is marked."""
    groups: dict[tuple, list[dict]] = {}
    for row in having(rows, "params.gamma", "params.round", "params.path"):
        gamma = row["params"]["gamma"]
        tried = any(score is not None for _, score in row["params"]["path"])
        if row["status"] == "ok" and str(row["params"].get("label")).startswith("tune ") and isinstance(gamma, (int, float)) and tried:
            groups.setdefault((row["dataset"], row["method"], row["kernel"]), []).append(row)
    if not groups:
        raise DataError("the results file has no trials over a bandwidth; rfx tune --results FILE makes them")
    columns = min(3, len(groups))
    figure, grid = style.grid(-(-len(groups) // columns), columns, 2.8)
    cells = [axes for line in grid for axes in line]
    for axes, ((dataset, method, kernel), own) in zip(cells, groups.items()):
        _panel(figure, axes, own)
        style.head(axes, ", ".join(filter(None, (f"{dataset}: {method}", kernel))))
    for axes in cells[len(groups) :]:
        axes.remove()
    some = rows[-1]
    style.finish(figure, "Search over bandwidth and lambda", ["Held-out scores; white: not tried.", style.machines([some])])
    return figure


def _panel(figure, axes, rows):
    last = max(row["params"]["round"] for row in rows)
    rows = [row for row in rows if row["params"]["round"] == last]
    size = lambda row: next((row["params"][name] for name in ("n_grids", "block_size") if name in row["params"]), row["n_features"])
    sizes = [size(row) for row in rows]
    common = max(sizes, key=sizes.count)
    rows = sorted((row for row in rows if size(row) == common), key=lambda row: row["params"]["gamma"])
    lams = sorted({lam for row in rows for lam, _ in row["params"]["path"]})
    values = np.full((len(lams), len(rows)), np.nan)
    for column, row in enumerate(rows):
        for lam, score in row["params"]["path"]:
            values[lams.index(lam), column] = np.nan if score is None else score
    low = rows[0]["metric"] in ("rmse", "log_loss")
    image = axes.imshow(values, origin="lower", aspect="auto", cmap="viridis_r" if low else "viridis")
    figure.colorbar(image, ax=axes, label=style.plain(rows[0]["metric"] or "score"))
    best = np.unravel_index((np.nanargmin if low else np.nanargmax)(values), values.shape)
    axes.plot([best[1]], [best[0]], marker="*", color="#D55E00", markersize=9, linestyle="", gid="tune-best")
    axes.set_xticks(range(len(rows)), [f"{row['params']['gamma']:.3g}" for row in rows], rotation=45)
    axes.set_yticks(range(len(lams)), [f"{lam:g}" for lam in lams])
    axes.grid(False)
    axes.set_xlabel("gamma" + (f" (size {common})" if common else ""))
    axes.set_ylabel("lambda")


FIGURES = {"tune": surface}
