"""The documentation site: `make docs` builds it into docs/_build/html."""

import sys
from pathlib import Path

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
html_show_sourcelink = False
numpydoc_show_class_members = False
autosummary_generate = True
autodoc_member_order = "bysource"
nitpicky = False
# files beside the pages, such as rows, are linked as they are
suppress_warnings = ["myst.xref_missing"]
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
}
