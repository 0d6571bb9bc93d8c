"""The pages of the API have every public name once, methods once, and fields with what the comments beside them say."""

import re
from types import ModuleType

import pytest

import structperc
from docs import api
from structperc.structures import Lattice
from tests.docs.written import DOCS, ROOT, resolved


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """{package: text of its page}."""
    return {package: api.page(package, names) for package, names in api.entries().items()}


@pytest.fixture(scope="module")
def members(pages) -> dict[str, list[str]]:
    """{public path of a class: its methods on the page}."""
    text = "\n".join(pages.values())
    found = re.findall(r"^\.\. auto\w+:: (\S+)((?:\n   .*)*)", text, re.MULTILINE)
    return {path: re.findall(r"\w+", options.partition(":members:")[2]) for path, options in found}


def test_every_public_name_has_one_entry(pages):
    described = re.findall(r"^\.\. auto\w+:: (\S+)$", "\n".join(pages.values()), re.MULTILINE)
    assert len(set(described)) == len(described)
    objects = {id(resolved(path)) for path in described}
    packages = [found for name in structperc.__all__ if isinstance(found := getattr(structperc, name), ModuleType)]
    exported = [getattr(package, name) for package in packages for name in getattr(package, "__all__", ())]
    assert exported
    assert not [one for one in filter(callable, exported) if id(one) not in objects]


def test_packages_are_in_the_order_of_the_data_flow(pages):
    listed = re.findall(r"^(\w+)  ", str(structperc.__doc__), re.MULTILINE)
    assert [name for name in listed if name != "cli"] == [name for name in pages if name != "errors"]


def test_methods_are_described_once(members):
    packages = "structperc.models.", "structperc.predictor."
    of_models = [name for path, names in members.items() for name in names if path.startswith(packages)]
    assert {"tag", "kbest", "marginals", "save", "load", "decode"} <= set(of_models)  # some of bases without an entry
    assert "losses_and_updates" in members["structperc.criteria.Criterion"]
    assert "forward" not in members["structperc.criteria.MarginLoss"]  # described with the base class


def test_fields_have_their_comments():
    lines: list[str] = ["Scores of labels."]
    api.process_docstring(None, "class", "structperc.structures.Lattice", Lattice, None, lines)
    assert "Attributes:" in lines
    assert [line for line in lines if "unary (Tensor)" in line and "(B, T, L)" in line]


def test_docstrings_become_restructured_text():
    written = ["Return x_ * |g|^2 of `a*b` and *args.", "", "```yaml", "k: 2", "```", "* item", ">>> f(*a)", "1 | 2"]
    expected = [r"Return x\_ \* \|g\|^2 of `a*b` and \*args.", "", ".. code-block:: yaml", "", "   k: 2"]
    assert api.as_rst(written) == [*expected, "* item", ">>> f(*a)", "1 | 2"]


def test_every_page_is_in_the_navigation():
    """Each page of docs is named in the toctree of one index."""
    listed: list[str] = []
    for index in DOCS.rglob("index.md"):
        folder = index.parent.relative_to(DOCS)
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", index.read_text(encoding="utf-8"), re.MULTILINE | re.S):
            listed += [(folder / name).as_posix() for name in re.findall(r"^[\w/]+$", tree, re.MULTILINE)]
    assert len(set(listed)) == len(listed)
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    notebooks = {f"tutorials/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    wanted = {page for page in pages if not page.startswith("_")} | notebooks | {"reference/api/index"}
    assert wanted - {"index"} == set(listed)
