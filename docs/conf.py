"""Configuration of the documentation site; `python -m docs.build` runs Sphinx with it."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1])]

from structperc.version import __version__  # noqa: E402

project = "structperc"
author = "the authors of structperc"
project_copyright = "2026, the authors of structperc"
version = release = __version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "docs.extension",
]
exclude_patterns = ["_build"]
default_role = "api"
nitpicky = True
nitpick_ignore_regex = [  # names of other packages, which a build without a network cannot look up
    ("py:.*", r"(?!structperc\b).*"),
]
suppress_warnings = ["mystnb.unknown_mime_type"]

# -- pages: MyST Markdown and notebooks with stored outputs ---------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
nb_execution_mode = "off"  # the tests run the notebooks
nb_ipywidgets_js: dict[str, Any] = {}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# -- API: docstrings in Google style, signatures with types ---------------------------------------------------

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 110
toc_object_entries_show_parents = "hide"
add_module_names = False

# -- HTML -----------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = "structperc"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}
