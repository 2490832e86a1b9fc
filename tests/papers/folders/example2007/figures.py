"""Figure 1: the test error of random features over their number."""

from rfx.reporting import style
from rfx.reporting.cells import Builder, mean_if_any
from rfx.reporting.effects import frame, select
from rfx.reporting.figures import Chart, Panel, mean_curve


def figure1(rows) -> Chart:
    """A panel for each data set."""
    runs = select(frame(rows), {"method": "rf"})
    panels = [_panel(dataset, own) for dataset, own in runs.groupby("dataset", sort=False)]
    return Chart("Author and Author 2007, Figure 1", [style.machines(rows)], [panels])


def _panel(dataset, runs) -> Panel:
    means = runs.groupby("n_features")["wrong"].agg(mean_if_any).to_dict()
    curve = mean_curve(means, style.look("rf"), "random features", f"figure1-{dataset}")
    return Panel(dataset, "features D", "test error", [curve], dress=style.log_places)


FIGURES = {"figure1": Builder("example2007-figure1", figure1, plan="table1")}
