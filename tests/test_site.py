"""The documentation site for a reader: in a real browser, axe-core finds nothing, no page is wider
than its window, and every link within the site works.

The site is built into the folder that `make docs` uses; files that are up to date are not built
again.
"""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browsing import PHONE, WIDE, chromium, needed, open_page, violations

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
# the front page, a guide page, the gallery and one of its pages, a page with wide tables, the API
PAGES = ["index", "walkthrough", "gallery/index", "gallery/plot_sparse", "results", "api"]


@pytest.fixture(scope="module")
def site():
    modules = ("sphinx", "pydata_sphinx_theme", "myst_parser", "sphinx_gallery")
    needed(modules=(*modules, "numpydoc", "sphinx_click"))
    built = ROOT / "docs" / "_build" / "html"
    words = ["-q", "-W", "--keep-going", "-b", "html", ROOT / "docs", built]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return built


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_accessible_and_not_too_wide(browser, site, name, size, dark):
    open_page(browser, site / f"{name}.html", size, dark)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert violations(browser) == []


class Page(HTMLParser):
    """The anchors of a page, and the targets of its links and images."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        self.links |= {given[name] for name in ("href", "src") if given.get(name)}


def test_every_link_within_the_site_leads_somewhere(site):
    pages = {
        path: Page(path.read_text("utf-8"))
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    assert len(pages) > 60
    broken, followed = set(), 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            followed += 1
            if not target.exists() or (
                anchor and target in pages and anchor not in pages[target].anchors
            ):
                broken.add(f"{path.relative_to(site)}: {link}")
    assert followed > 1000 and broken == set()
