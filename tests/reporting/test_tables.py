"""Tables: which row fills which cell, printed numbers, marks, dashes, notes, and every format."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from rfx import papers
from rfx.errors import UsageError
from rfx.records.run import Result
from rfx.reporting import cells, tables
from rfx.reporting.cells import Cell, Printed
from rfx.reporting.tables import FORMATS, compare, render, text, texts

SIZES = {
    "cpu": (6554, 819, 21),
    "census16h": (18186, 2273, 16),
    "yearpred-sized": (463715, 51630, 90),
}


def row(dataset="cpu", method="rf", kernel="gaussian", **more):
    n_train, n_test, n_inputs = SIZES.get(dataset, (10, 5, 2))
    given = {
        "key": f"{dataset}{method}{kernel}{more}",
        "status": "ok",
        "dataset": dataset,
        "method": method,
        "kernel": kernel,
        "n_train": n_train,
        "n_test": n_test,
        "n_inputs": n_inputs,
        "lam": 1.0,
        "metric": "rmse",
        "score": 0.0371,
        "n_features": None if method == "kernel" else 10000,
        "model_size": 10000,
        "seconds_fit": 12.0,
        "seconds_features": 0.34,
        "seconds_predict": 0.041,
        "peak_rss_mb": 900.0,
        "converged": True,
        "threads": 2,
        "cpu": "A Processor",
        "rfx": "0.1",
        "params": {"label": "paper", "gamma": "paper", "kernel_params": {"gamma": 0.5}},
    }
    return Result(**given | more)


def build(*rows, name="yen2014-table1", setting=None):
    return tables.build(name, list(rows), setting, papers.tables())


def cell(table, field, dataset="cpu", kernel="gaussian", method="rf"):
    (found,) = (
        cell
        for cell in table.cells
        if (cell["dataset"], cell["kernel"], cell["method"], cell["field"])
        == (dataset, kernel, method, field)
    )
    return found


def line(table, dataset, kernel, heading):
    section = next(
        section for section in table.sections if section.title.split(" ")[0].rstrip(":") == dataset
    )
    kernels = [text[0] for text in texts(section)]
    start = kernels.index(kernel)
    return next(text for text in texts(section)[start:] if text[1] == heading)


@pytest.mark.parametrize("rf, lam", [([row(score=0.037)], 10), ([], 1)])
def test_sparse_rf_takes_the_lambda_whose_score_is_closest_to_rf_else_the_best(rf, lam):
    scores = {1.0: 0.030, 10.0: 0.0365, 100.0: 0.05}
    rows = [row(method="sparse-rf", lam=lam, score=score) for lam, score in scores.items()]
    assert cell(build(*rf, *rows), "lam", method="sparse-rf")["ours"] == lam


def test_settings_are_kept_apart():
    tuned = {"label": "tuned", "gamma": "tuned", "kernel_params": {"gamma": 1.65}}
    rows = [row(score=0.037), row(score=0.030, params=tuned)]
    assert cell(build(*rows), "rmse")["ours"] == 0.037
    table = build(*rows, setting="tuned")
    assert cell(table, "rmse")["ours"] == 0.030
    assert "gamma of gaussian = 1.65: cpu" in table.notes
    assert cell(build(rows[1]), "rmse")["ours"] == 0.030, "the setting that there is"
    with pytest.raises(UsageError, match="--setting best: yen2014-table1 has paper, tuned"):
        build(setting="best")


def test_more_features_win_then_newer_rows():
    rows = [
        row(n_features=10000, score=0.037),
        row(n_features=1000, score=0.05),
        row(n_features=10000, score=0.038),
    ]
    assert cell(build(*rows), "rmse")["ours"] == 0.038
    assert "rf has D = 1,000 where the paper has 10,000: cpu" in build(rows[1]).notes


SCORES = (0.0371, 0.0369, 0.0372, 0.0368, 0.0370)


def test_only_the_seed_makes_rows_one_cell():
    rows = [
        row(seed=0, score=0.5),
        row(seed=0, score=0.3),
        row(seed=1, score=0.2, solver="cg"),
        row(seed=2, score=0.1, solver="cg"),
    ]
    scores = [[one["score"] for one in group] for group in cells.variants(rows)]
    assert scores == [[0.3], [0.2, 0.1]], "of one seed the newest row"
    assert cell(build(*rows), "rmse")["ours"] == pytest.approx(0.15), "the variant made last"


def test_what_was_learnt_from_the_data_does_not_tell_runs_apart():
    own = {"label": "paper", "gamma": "tuned"}
    learnt = [row(seed=seed, params=own | {"kernel_params": {"gamma": seed}}) for seed in (0, 1)]
    assert len(cells.variants(learnt)) == 1


@pytest.mark.parametrize("kernel, count", [("perceptron", 1), ("gaussian", 2)])
def test_a_word_for_a_bandwidth_that_a_kernel_lacks_does_not_tell_runs_apart(kernel, count):
    given = row(solver="cg")
    rows = [
        replace(given, seed=seed, kernel=kernel, params=given.params | {"gamma": word})
        for seed, word in ((1, "paper"), (2, "median"))
    ]
    assert len(cells.variants(rows)) == count


def test_the_lambdas_that_seeds_chose_are_a_range():
    chosen = [
        row(seed=seed, method="sparse-rf", lam=lam, params={"label": "paper", "lam": "validation"})
        for seed, lam in ((0, 1.0), (1, 10.0))
    ]
    assert line(build(*chosen), "cpu", "gaussian", "lambda")[4] == "1 to 10 / -"


def test_of_several_lambdas_the_closest_to_rf_by_the_mean_over_seeds_is_shown():
    given = [
        row(seed=seed, method="sparse-rf", lam=lam, score=lam / 1000)
        for seed in (0, 1)
        for lam in (10.0, 37.0)
    ]
    assert cell(build(row(), *given), "lam", method="sparse-rf")["ours"] == 37


@pytest.mark.parametrize(
    "value, expected",
    [(0.60, "equal"), (0.649, "equal"), (0.651, "no deviation"), (0.549, "no deviation")],
)
def test_without_noise_a_number_is_equal_as_it_is_rounded(value, expected):
    assert cells.verdict_of(cells.mean_if_any([value] * 5), Printed("0.6"), "high") == expected
    ours = cells.mean_if_any([value] * 5)
    cell = Cell(ours, paper=Printed("0.6"), pair=True, verdict=expected)
    assert cell.outcome == ("equal" if expected == "equal" else "beside")
    assert text(cell).endswith("/ 0.6 (=)" if expected == "equal" else "/ 0.6 (0)")
    assert cells.verdict_of(cells.mean_if_any([value]), Printed("0.6"), "high") is None
    assert cells.verdict_of(ours, Printed("0.6"), "") is None


def verdicts(deviation, shift, count=2000):
    """The verdicts of five runs and a printed one, all with the same deviation, `shift` apart."""
    random = np.random.default_rng(0)
    return [
        cells.verdict_of(
            cells.mean_if_any(list(deviation * random.normal(size=5) + shift)),
            Printed(f"{deviation * random.normal():.15f}"),
            "high",
            "share",
        )
        for _ in range(count)
    ]


def test_without_a_difference_one_in_a_hundred_is_called_different():
    found = verdicts(1.0, 0.0)
    different = found.count("better") + found.count("worse")
    assert different / len(found) == pytest.approx(0.01, abs=0.006)
    # noise far above the margin: nothing is equivalent
    assert found.count("equal") <= 1 and found.count("undecided") > 1900


def test_at_the_margin_one_in_twenty_is_called_equivalent():
    for shift in (0.01, -0.01):
        found = verdicts(0.001, shift)
        assert found.count("equal") / len(found) == pytest.approx(0.05, abs=0.015)
    assert set(verdicts(1e-4, 0.0, 200)) == {"equal"}
    assert set(verdicts(1e-4, 0.02, 200)) == {"better"}


def test_what_is_not_told_apart_is_not_equivalent():
    ours = cells.mean_if_any([0.80, 0.86, 0.90, 0.94, 1.0])
    assert cells.verdict_of(ours, Printed("0.92"), "high", "share") == "undecided"
    assert text(Cell(ours, paper=Printed("0.92"), pair=True, verdict="undecided")).endswith("(?)")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["yen2014-table1", "summary", "wu2016-fig3"])
@pytest.mark.parametrize(
    "rows",
    [
        [],
        [
            row(),
            row(method="sparse-rf", converged=False),
            row(status="failed", message="50% of a_b | c", score=None),
        ],
    ],
)
def test_every_format_renders_every_table(form, name, rows):
    text = render(build(*rows, name=name), form)
    assert text.endswith("\n") and not text.endswith("\n\n")


def test_csv_and_json_are_tidy():
    table = build(row())
    records = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert len(records) == 3 * 4 * 3 * 6  # a line of ours next to the paper's three kernels
    (found,) = (
        r
        for r in records
        if (r["dataset"], r["kernel"], r["method"], r["field"]) == ("cpu", "gaussian", "rf", "rmse")
    )
    assert (found["ours"], found["paper"], found["converged"]) == ("0.0371", "0.037", "True")
    content = json.loads(render(table, "json"))
    assert (
        content["table"] == "yen2014-table1"
        and content["cells"] == table.cells
        and content["notes"]
    )


def test_markdown_and_latex_escape():
    failed = row(status="failed", message="50% of a_b | c", score=None)
    assert r"50% of a_b \| c" in render(build(failed), "markdown")
    latex = render(build(failed), "latex")
    assert r"50\% of a\_b \textbar{} c" in latex and latex.count("{tabular}") == 2
    assert [latex.count(rule) for rule in (r"\toprule", r"\bottomrule", "booktabs")] == [
        1,
        1,
        1,
    ] and r"\hline" not in latex
    assert r"gaussian & model size & - / 6,554 & - / 10,000 & - / 57 \\" in render(build(), "latex")
    assert r"& lambda & -- & -- & -- \\" in render(build(), "latex")


def test_summary_lists_every_row_with_what_varies():
    rows = [
        row(),
        row(method="sparse-rf", converged=False, score=0.0321, lam=10.0),
        row("census", status="failed", message="no data", score=None),
    ]
    table = build(*rows, name="summary")
    (section,) = table.sections
    assert len(texts(section)) == 3 and section.columns[:5] == [
        "data set",
        "method",
        "lambda",
        "rmse",
        "model size",
    ]
    assert texts(section)[1][:4] == ["cpu", "sparse-rf", "10", "0.03210!*"]
    assert table.notes[1:3] == ["census rf (failed): no data", "*: the solver did not converge"]
    assert table.notes[3].startswith(
        "All rows: setting paper, kernel gaussian, D 10,000, gamma paper"
    )
    assert (
        len(build(*rows, row(params={"label": "tuned"}), name="summary", setting="tuned").cells)
        == 1
    )
    with pytest.raises(UsageError, match=r"no row has it \(there are: paper\)"):
        build(*rows, name="summary", setting="tuned")


def test_summary_shows_every_column_that_tells_rows_apart():
    rows = [
        row(seed=seed, params={"gamma": gamma, "n_grids": grids, "tol": tol})
        for seed, gamma, grids, tol in ((0, 0.5, 8, 1e-3), (1, 0.5, 8, 1e-3), (0, 2.0, 16, 1e-4))
    ]
    rows = [
        replace(one, method="sparse-rb", n_features=100 + number) for number, one in enumerate(rows)
    ]
    (section,) = build(*rows, name="summary").sections
    assert section.columns[:8] == ["data set", "method", "D", "R", "gamma", "seed", "tol", "rmse"]
    assert texts(section)[2][:7] == ["cpu", "sparse-rb", "102", "16", "2", "0", "0.0001"]
    both = build(*rows, row("ijcnn1", metric="accuracy"), name="summary").sections[0]
    assert (
        both.columns[both.columns.index("score") + 1] == "metric"
        and len({len(line) for line in texts(both)}) == 1
    )


def summary(*rows, **more):
    return tables.build("summary", list(rows), None, papers.tables(), **more)


def column(table, name):
    """The texts of a column of the only section."""
    (section,) = table.sections
    return [line[section.columns.index(name)] for line in texts(section)]


def test_summary_keeps_the_methods_of_a_data_set_together():
    """A plan has one method after the other."""
    rows = [row(name, method=method) for method in ("rf", "kernel") for name in ("cpu", "ijcnn1")]
    cells = [(line["dataset"], line["method"]) for line in summary(*rows).cells]
    assert cells == [("cpu", "rf"), ("cpu", "kernel"), ("ijcnn1", "rf"), ("ijcnn1", "kernel")]


def test_the_title_has_a_number_of_features_that_is_not_the_papers():
    small = row("cpu", method="rf", n_features=1000, params={"label": "paper"})
    assert "; D = 1,000 beside the paper's 10,000" in build(small).title
    assert "beside" not in build(replace(small, n_features=10_000)).title


def test_summary_by_groups_has_means_their_noise_and_how_many():
    rows = [row(seed=seed, score=score) for seed, score in enumerate(SCORES)]
    rows += [
        row(
            seed=seed, method="sparse-rf", score=score + 0.01, lam=lam, params={"lam": "validation"}
        )
        for (seed, score), lam in zip(enumerate(SCORES), (1.0, 10.0, 10.0, 10.0, 10.0))
    ]
    table = summary(*rows, row(status="failed", message="x", score=None), mean_over="seed")
    assert column(table, "n") == ["5", "5"], "not by a lambda of validation"
    assert column(table, "rmse") == ["0.03700 ± 0.00016!", "0.04700 ± 0.00016"]
    assert table.cells[0]["score_sd"] == pytest.approx(np.std(SCORES, ddof=1))
    assert "10 rows in 2 groups, means over seed" in table.title
    by = summary(*rows, group_by="method")
    assert by.sections[0].columns[:3] == ["method", "n", "rmse"]
    assert [line[:2] for line in texts(by.sections[0])] == [["rf", "5"], ["sparse-rf", "5"]]
    mixed = summary(row(), row("ijcnn1", metric="accuracy"), group_by="dataset,method")
    assert len(mixed.cells) == 2, "an RMSE and an accuracy have no mean"
    assert summary(*rows, group_by="D,lambda").sections[0].columns[:3] == ["D", "lambda", "n"]


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("summary", {"group_by": "sed"}, "no row has a column sed; did you mean seed"),
        ("x", {}, "there is no table x .there are: .*summary.*yen2014-table1"),
    ],
)
def test_refusals(name, more, message):
    with pytest.raises(UsageError, match=message):
        tables.build(name, [row(seed=0), row(seed=1)], None, papers.tables(), **more)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_text_fits_the_width_and_loses_nothing(width):
    rows = [
        row(seed=seed, score=score, message="long " * 40, lam=10.0**seed)
        for seed, score in enumerate(SCORES)
    ]
    for table in (
        build(*rows, name="summary"),
        build(*rows),
        summary(*rows, mean_over="seed,lambda"),
    ):
        text = render(table, "text", width)
        assert max(map(len, text.splitlines())) <= width
        flat = " ".join(text.split())
        for section in table.sections:
            for line in (section.columns, *texts(section)):
                assert all(" ".join(part.split()) in flat for part in line)


@pytest.mark.parametrize(
    ("metric", "scores", "listed", "grouped"),
    [
        ("rmse", (5e-6, 5.2e-6), "5.000e-06", "5.100e-06 ± 1e-07"),
        ("rmse", (1e40, 1.2e40), "1.000e+40", "1.100e+40 ± 1e+39"),
        ("rmse", (12.3, 12.5), "12.30", "12.40 ± 0.14"),
        ("log_loss", (3e-5, 3e-5), "3.000e-05", "3.000e-05 ± 0"),
        ("accuracy", (0.9, 0.91), "0.9000", "0.9050 ± 0.0071"),
    ],
)
def test_an_error_has_digits_in_any_unit_and_a_share_four_decimals(metric, scores, listed, grouped):
    rows = [row(seed=seed, score=score, metric=metric) for seed, score in enumerate(scores)]
    assert column(summary(*rows), metric)[0].rstrip("!") == listed
    assert column(summary(*rows, mean_over="seed"), metric)[0].rstrip("!") == grouped
    assert column(compare(rows, rows), "score A")[0] == listed


def test_csv_of_a_table_is_not_run_by_a_spreadsheet():
    (record,) = csv.DictReader(
        io.StringIO(render(build(row("=cmd|' /C calc'!A0"), name="summary"), "csv"))
    )
    assert record["dataset"] == "'=cmd|' /C calc'!A0"


def test_two_files_side_by_side():
    a = [row(seed=0, score=0.5), row(seed=1, score=0.4), row(method="kernel")]
    b = [
        replace(one, key="v1-other", score=one.score - 0.01, seconds_fit=24.34 - 0.34)
        for one in a[:2]
    ]
    b += [row("census"), replace(a[2], status="failed", score=None, seconds_fit=None)]
    table = compare(a, b)
    assert table.title == "3 runs in both, 0 in A only, 1 in B only"
    first = dict(zip(table.sections[0].columns, texts(table.sections[0])[0]))
    assert (first["score A"], first["score B"], first["change"], first["B / A"]) == (
        "0.5000",
        "0.4900",
        "-0.01",
        "1.97",
    )
    last = dict(zip(table.sections[0].columns, texts(table.sections[0])[-1]))
    assert (last["method"], last["score B"], last["change"]) == ("kernel", "failed", "-")
    assert "Scores: 0 of 2 the same to the last digit, the largest change 0.01." in table.notes
    assert (
        compare(a, a).notes[0] == "Scores: 3 of 3 the same to the last digit, the largest change 0."
    )
    for form in FORMATS:
        assert render(table, form).endswith("\n") and render(compare([], []), form)


def test_summary_marks_the_best_and_compares_the_others_with_it():
    scores = {"rf": (0.80, 0.82, 0.81), "kernel": (0.90, 0.95, 0.91), "rb": (0.70,)}
    rows = [
        row(method=method, seed=seed, score=score, metric="accuracy")
        for method, own in scores.items()
        for seed, score in enumerate(own)
    ]
    cells = {cell["method"]: cell for cell in summary(*rows, group_by="dataset,method").cells}
    assert [cell["best"] for cell in cells.values()] == [False, True, False]
    assert cells["rf"]["paired_p"] == pytest.approx(
        scipy.stats.ttest_rel(scores["rf"], scores["kernel"]).pvalue
    )
    assert (
        cells["rf"]["pairs"],
        cells["rb"]["pairs"],
        cells["rb"]["paired_p"],
        cells["kernel"]["paired_p"],
    ) == (3, 1, None, None)
    low = [replace(row, metric="rmse") for row in rows]
    partial = summary(*low, group_by="dataset,method")
    assert [cell["best"] for cell in partial.cells] == [True, False, False], "rb lacks two seeds"
    assert any("1 of the groups lacks runs" in note for note in partial.notes)
    text = render(summary(*rows), "text")
    assert text.count("0.9500!") == 1 and "!: the best score of its data set" in text


STEP = {
    "by": "rf",
    "options": ["lam"],
    "fitted": 60,
    "held_out": 20,
    "error": "share of wrong labels",
    "tried": [[1.0, 0.1], [3.0, 0.2]],
    "chosen": [1.0],
}


@pytest.mark.parametrize("said", ["validation", "asked"])
def test_groups_are_of_what_was_asked_for_not_of_what_was_chosen(said):
    params, kernels = {"validation": [STEP]}, ["gaussian"] * 3
    if said == "asked":
        words = {"lam": "auto", "kernel": "auto", "scaling": "auto", "metric_steps": None}
        params, kernels = {"asked": words}, ["gaussian", "laplacian", "gaussian"]
    rows = [
        row(
            seed=seed,
            lam=lam,
            metric="accuracy",
            score=0.9,
            kernel=kernels[seed],
            params={"scaling": "standard"}
            | ({"metric_steps": seed} if said == "asked" else {})
            | params,
        )
        for seed, lam in enumerate((1.0, 3.0, 3.0))
    ]
    table = summary(*rows, mean_over="seed")
    (cell,) = table.cells
    assert cell["n"] == 3
    assert column(table, "lambda") == ["1 to 3"]
    by = summary(*rows, group_by="dataset,lambda")
    assert texts(by.sections[0])[0][1] == "auto (1 to 3)"
    assert [by.cells[0][name] for name in ("lam", "lam_low", "lam_high")] == ["auto", 1.0, 3.0]
    assert column(summary(*rows), "lambda") == ["1", "3", "3"]


def test_rows_of_two_states_of_a_file_are_different_data():
    rows = [
        row(seed=seed, model_size=size, params={"content": content})
        for content, size in (("0a1b2c3d", 3500), ("4e5f6a7b", 3000))
        for seed in (0, 1)
    ]
    table = summary(*rows, mean_over="seed")
    assert [(cell["n"], cell["model_size"]) for cell in table.cells] == [(2, 3500), (2, 3000)]
    assert column(table, "state of the file") == ["0a1b2c3d", "4e5f6a7b"]


def test_groups_are_of_a_lambda_that_was_given():
    rows = [row(seed=seed, lam=lam) for seed in (0, 1) for lam in (1.0, 3.0)]
    assert len(summary(*rows, mean_over="seed").cells) == 2


def test_the_metric_of_the_inputs_is_not_that_of_the_score():
    rows = [
        row(seed=seed, params={"metric": metric}) for seed in (0, 1) for metric in ("none", "full")
    ]
    cells = summary(*rows, mean_over="seed").cells
    assert [(cell["metric"], cell["learnt_metric"], cell["n"]) for cell in cells] == [
        ("rmse", "none", 2),
        ("rmse", "full", 2),
    ]


def test_fewer_than_three_pairs_have_no_p():
    rows = [
        row(method=method, seed=seed, score=score)
        for method, own in {"rf": (0.1, 0.2), "kernel": (0.3, 0.5)}.items()
        for seed, score in enumerate(own)
    ]
    table = summary(*rows, mean_over="seed")
    assert column(table, "paired p") == ["-", "2 pairs"]
    assert table.cells[1]["paired_p"] is None and table.cells[1]["pairs"] == 2
    assert "Fewer than 3 pairs of runs have no p." in table.notes


def test_a_run_without_chance_stands_for_every_seed():
    scores = (0.80, 0.82, 0.81)
    rows = [row(seed=seed, score=score, metric="accuracy") for seed, score in enumerate(scores)]
    rows.append(
        row(method="kernel", seed=0, score=0.9, metric="accuracy", params={"seedless": True})
    )
    rf, kernel = summary(*rows, mean_over="seed").cells
    assert kernel["best"] and (kernel["n"], rf["pairs"]) == (1, 3)
    assert rf["paired_p"] == pytest.approx(scipy.stats.ttest_1samp(scores, 0.9).pvalue)


def test_unlike_data_sets_are_ranked_never_averaged():
    scores = {
        ("rf", "cpu"): 0.1,
        ("kernel", "cpu"): 0.2,
        ("rb", "cpu"): 0.2,
        ("rf", "cadata"): 500.0,
        ("kernel", "cadata"): 400.0,
    }
    rows = [row(data, method, score=score) for (method, data), score in scores.items()]
    rows += [row("ijcnn1", "rf", metric="accuracy", score=0.9)]
    rows += [row("ijcnn1", "kernel", metric="accuracy", score=0.8)]
    table = summary(*rows, group_by="method")
    (section,) = table.sections
    assert section.columns[:4] == ["method", "n", "data sets", "rank by score"]
    assert [line[:4] for line in texts(section)] == [
        ["rf", "3", "3", "1.33 ± 0.58!"],
        ["kernel", "3", "3", "1.83 ± 0.76"],
        ["rb", "1", "1", "2.50"],
    ]
    assert "score" not in table.cells[0] and table.cells[0]["rank_score"] == pytest.approx(4 / 3)
    assert "mean rank over 3 data sets" in table.title and "no mean" in table.notes[0]
    alone = summary(*rows[:3], group_by="method")
    assert alone.cells[0]["score"] == 0.1, "the mean is within one data set"


def test_latex_splits_a_wide_table_and_repeats_the_labels():
    rows = [
        row(method=method, seed=seed, score=score, params={"gamma": gamma, "tol": gamma / 100})
        for method in ("rf", "sparse-rf")
        for gamma in (1, 2)
        for seed, score in enumerate(SCORES)
    ]
    rows = [replace(one, kernel=one.params["tol"] * 1e12) for one in rows]
    table = summary(*rows, mean_over="seed")
    wide, narrow = render(table, "latex"), render(summary(*rows, group_by="method"), "latex")
    tabulars = wide.split(r"\begin{tabular}")[1:]
    assert len(tabulars) > 1 and all("data set & method &" in one for one in tabulars)
    assert wide.count(r"\resizebox{\linewidth}{!}{%") == wide.count("\n}\n") > 0
    written = "".join(tabulars)
    assert all(written.count(f"{head} ") >= 1 for head in table.sections[0].columns)
    assert narrow.count("{tabular}") == 2


def test_an_option_that_differs_between_methods_is_shown_unless_it_is_their_default():
    rows = [
        row(method=method, seed=seed, score=score, params={"scaling": scaling, "tol": tol})
        for method, scaling, tol in (("rf", "standard", 1e-3), ("sparse-rf", "power", 1e-3))
        for seed, score in enumerate(SCORES[:3])
    ]
    section = summary(*rows, mean_over="seed").sections[0]
    assert section.columns[:3] == ["data set", "method", "scaling"]
    assert [line[2] for line in texts(section)] == ["standard", "power"]
    rows = [
        row(method=method, seed=0, params={"scaling": cells.options_of(method)[1]["scaling"]})
        for method in ("rf", "boosting")
    ]
    assert rows[0]["params"] != rows[1]["params"]
    assert "scaling" not in summary(*rows, mean_over="seed").sections[0].columns


def test_seconds_of_training_include_those_of_choosing():
    chosen = row(params={"seconds_validation": 5.0})
    assert summary(chosen).cells[0]["seconds_train"] == pytest.approx(17.34)
    assert compare([row(params={})], [chosen]).cells[0]["seconds_b"] == pytest.approx(17.34)


@pytest.mark.parametrize("more", [{}, {"mean_over": "seed"}])
def test_the_method_that_was_asked_for_is_named_with_the_one_that_it_chose(more):
    asked = row(method="rfm", seed=0, params={"asked": {"method": "auto"}})
    table = summary(asked, row(method="rfm", seed=0, score=0.04), **more)
    assert column(table, "method") == ["auto (rfm)", "rfm"]


def test_paired_tests_are_corrected_for_their_number():
    random = np.random.default_rng(0)
    best = random.normal(size=6)
    scores = {
        name: best + shift + 0.1 * random.normal(size=6)
        for name, shift in (("kernel", 0.5), ("rf", 0.12), ("rb", 0.15), ("nystrom", 0.3))
    }
    rows = [
        row(method=method, seed=seed, score=score)
        for method, own in {"rfm": best, **scores}.items()
        for seed, score in enumerate(own)
    ]
    plain = {name: scipy.stats.ttest_rel(own, best).pvalue for name, own in scores.items()}
    order, expected = sorted(plain, key=plain.get), {}
    for rank, name in enumerate(order):
        expected[name] = min(
            1, max(plain[one] * (4 - i) for i, one in enumerate(order[: rank + 1]))
        )
    table = summary(*rows, group_by="dataset,method")
    cells = {cell["method"]: cell["paired_p"] for cell in table.cells}
    assert cells == {"rfm": None} | {name: pytest.approx(p) for name, p in expected.items()}
    assert cells["kernel"] > plain["kernel"]
    assert any("corrected for the number of tests" in note for note in table.notes)
