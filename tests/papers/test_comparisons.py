"""What the papers' claims compare: as many rows, one search, one thread, and the fit alone."""

from dataclasses import replace

import pytest

from rfx import papers
from rfx.papers.dai2014 import claims as dai2014
from rfx.papers.sinha2016 import claims as sinha2016
from rfx.papers.wu2016 import claims as wu2016
from rfx.papers.yen2014 import claims as yen2014
from rfx.plans import plan
from rfx.records.run import Result
from rfx.reporting.effects import frame


def effects(paper, name, rows):
    """The effects that a claim measures in rows."""
    (claim,) = [claim for claim in paper.CLAIMS if claim.name == name]
    return claim.measure(frame(rows))


def row(method, seed=0, **more):
    """A row of cpu with setting tuned."""
    params = {"label": "tuned", "lam": "validation"} | more.pop("params", {})
    given = {"dataset": "cpu", "kernel": "gaussian", "n_features": 10, "threads": 1, "score": 1.0}
    own = {"status": "ok", "key": f"{method}{seed}", "metric": "rmse", "method": method}
    return Result(**given | own | {"seed": seed, "params": params} | more)


def loaded(name):
    return plan.load(name, known=papers.plans()).runs


def test_all_methods_of_8_against_6_meet_as_many_rows():
    """The dual methods met 117,690 rows, the others 65,536."""
    runs = [run for run in loaded("dai2014-fig1-mnist8v6") if run.label == "mnist8v6-sc1"]
    counts = {
        run.method: run.options.get("budget_samples", 11769 * run.options.get("virtual_copies", 0))
        for run in runs
    }
    assert len(counts) == 7 and set(counts.values()) == {58845}


@pytest.mark.parametrize("name", ["yen2014-table1", "yen2014-table2", "yen2014-table2-full"])
def test_rf_and_sparse_rf_are_tuned_by_one_search_with_one_thread(name):
    """Sparse-RF matched RF at lambda 1, and was compared with RF at the best lambda."""
    runs = [run for run in loaded(name) if run.method in ("rf", "sparse-rf")]
    tuned = [run for run in runs if run.label == "tuned"]
    words = {(run.method, run.options["gamma"], run.options["lam"]) for run in tuned}
    assert words == {(method, "tuned", "validation") for method in ("rf", "sparse-rf")}
    seeds = [{run.seed for run in tuned if run.method == name} for name in ("rf", "sparse-rf")]
    assert seeds[0] == seeds[1]
    assert {run.threads for run in runs} == {1} and all(run.timings for run in tuned)


def test_cells_are_compared_in_pairs_of_one_seed():
    """A single run of RF was compared with every seed of Sparse-RF."""
    rows = [row("rf", score=1.0), *(row("sparse-rf", seed, score=2.0) for seed in range(3))]
    assert effects(yen2014, "comparable-rmse-tuned", rows)["cpu gaussian"] == [2.0]


def test_predictions_with_two_threads_are_not_compared_by_the_clock():
    both = [row(method, seconds_predict=2.0, threads=2) for method in ("rf", "sparse-rf")]
    timed = [replace(one, params=one.params | {"least_seconds_cpu_predict": 3.0}) for one in both]
    assert effects(yen2014, "faster-prediction-tuned", both)["cpu gaussian"] == []
    assert effects(yen2014, "faster-prediction-tuned", timed)["cpu gaussian"] == [1.0]


def test_seconds_of_fits_are_the_least_of_the_processor_and_memory_without_the_search():
    chosen = {"seconds_validation": 5.0}
    peaks = {"rf": 600.0, "sparse-rf": 500.0}
    rows = [row(name, peak_rss_mb=peak, params=chosen) for name, peak in peaks.items()]
    assert effects(yen2014, "less-memory-tuned", rows)["cpu gaussian"] == []
    assert effects(yen2014, "faster-regression-tuned", rows)["cpu gaussian"] == []
    timed = chosen | {"least_seconds_cpu": 1.0}
    rows = [
        row(name, peak_rss_mb=peak, params=timed | {"fit_rss_mb": peak - 400})
        for name, peak in peaks.items()
    ]
    assert effects(yen2014, "less-memory-tuned", rows)["cpu gaussian"] == [2.0]
    assert effects(yen2014, "faster-regression-tuned", rows)["cpu gaussian"] == [1.0]


def test_joint_optimisation_is_timed_by_the_processor_and_was_recalled():
    by_scores = row("lkrf", params={"joint": None, "seconds_scores": 1.0, "seconds_maximise": 1.0})
    jointly = row("lkrf", params={"joint": 10, "seconds_joint": 40.0})
    assert effects(sinha2016, "joint-slower", [by_scores, jointly]) == {}
    by_scores = by_scores.with_params(least_seconds_cpu_choice=1.0)
    jointly = jointly.with_params(least_seconds_cpu_choice=30.0)
    assert effects(sinha2016, "joint-slower", [by_scores, jointly]) == {"cpu": [30.0]}
    places = {one.where for one in sinha2016.CLAIMS if one.name.startswith("joint-")}
    assert len(places) == 1 and places.pop().startswith("recalled")


def test_the_cost_of_training_counts_features_times_rows():
    def trained(samples, size, rank):
        params = {"samples": samples, "rank": rank}
        return row("n-sdca", n_train=samples, model_size=size, params=params)

    whole = [trained(size, size, None) for size in (1024, 2048, 4096)]
    nystrom = [trained(size, size, size) for size in (1024, 2048, 4096)]
    assert effects(dai2014, "training-cost", whole)["n-sdca"] == pytest.approx([2])
    assert effects(dai2014, "training-cost", nystrom)["n-sdca"] == pytest.approx([3], abs=0.01)


def test_linear_time_counts_the_entries_that_are_read():
    rows = [
        row("rb", n_train=100, n_iter=steps, params={"n_grids": grids})
        for grids, steps in ((128, 49), (256, 99), (512, 199))
    ]
    # twice as many steps for twice as many grids
    assert effects(wu2016, "linear-time", rows)["cpu"] == pytest.approx([2])
