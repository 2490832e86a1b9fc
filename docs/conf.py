"""The documentation site: `make docs` builds it into docs/_build/html."""

import re
import sys
from pathlib import Path

from docutils import nodes

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rfx import _version

project = "rfx"
author = "The rfx authors"
copyright = "the rfx authors"
version = release = _version.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_click",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "rows", "examples", "gallery/*.py", "gallery/*.ipynb"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}
html_title = "rfx"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
numpydoc_show_class_members = False
autosummary_generate = True
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
nitpicky = False
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
}


def set_tables(app, doctree):
    """Break no line within a number and its deviation, and set columns of sentences from the
    left.
    """
    for group in doctree.findall(nodes.tgroup):
        rows = [list(row.findall(nodes.entry)) for row in group.findall(nodes.row)]
        for column in zip(*rows):
            if any(len(cell.astext().split()) > 8 for cell in column):
                for cell in column:
                    cell["classes"] = [name for name in cell["classes"] if name != "text-right"]
            for cell in column:
                if re.fullmatch(r"[\d\s.,±/()=+%–-]+", cell.astext()):
                    for text in list(cell.findall(nodes.Text)):
                        kept = re.sub(r" (?=[±(])|(?<=±) ", "\u00a0", text)
                        text.parent.replace(text, nodes.Text(kept))


def setup(app):
    app.connect("doctree-read", set_tables)
