"""Pages and train.py import public names, so that files can move; there are few of them."""

import ast
from collections.abc import Iterator
from importlib import import_module
from inspect import ismodule

import structperc
from tests.docs.written import PAGES, ROOT, blocks


def sources() -> Iterator[tuple[str, str]]:
    """(where it stands, code) of all Python on pages, and of the program."""
    for page in PAGES:
        yield from ((f"{page}, block {number}", code) for number, code in enumerate(blocks(page, "python")))
    yield "train.py", (ROOT / "train.py").read_text(encoding="utf-8")


def imported(code: str) -> Iterator[tuple[str, str]]:
    """(module, name) of each import from the package; without a name for `import module`."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("structperc."))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "structperc":
            yield from ((node.module, alias.name) for alias in node.names)


def is_public(module: str, name: str) -> bool:
    """Names of the package, of its packages and of the files beside these are, and so is the command line."""
    if name == "" or (module.count(".") >= 2 and module != "structperc.cli.main"):
        return False
    return not ismodule(getattr(import_module(module), name))


def test_imports_are_of_public_names():
    found = [(place, module, name) for place, code in sources() for module, name in imported(code)]
    assert {"structperc.chain", "structperc.analysis"} <= {module for _, module, _ in found}
    assert [one for one in found if not is_public(*one[1:])] == []


def test_number_of_public_names():
    packages = [found for name in structperc.__all__ if ismodule(found := getattr(structperc, name))]
    listed = [name for one in [structperc, *packages] for name in getattr(one, "__all__", ())]
    assert len(listed) - len(packages) <= 260


def test_files_and_packages():
    code = "import structperc.nn\nfrom structperc.nn.torchcrf import CRF\nfrom structperc.nn import CRF, subwords"
    assert [is_public(*one) for one in imported(code)] == [False, False, True, False]
