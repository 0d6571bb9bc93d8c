"""Pages, notebooks, benchmarks and train.py import public names of rooms, so that files can move."""

import ast
import json
from collections.abc import Iterator
from importlib import import_module
from inspect import ismodule

from tests.docs.written import PAGES, ROOT, blocks

# What benchmarks measure, or run, by itself, and nobody else needs.
INNER = {
    "structperc.features.attributes",
    "structperc.features.resources",
    "structperc.ops.cuda",
    "structperc.reranking.boosting",
    "structperc.taggers.full_batch_likelihood",
    "structperc.taggers.sequential_learning",
    "structperc.training.program",
}


def sources() -> Iterator[tuple[str, str]]:
    """(where it stands, code) of all Python outside of the package and its tests."""
    for page in PAGES:
        yield from ((f"{page}, block {number}", code) for number, code in enumerate(blocks(page, "python")))
    for path in [ROOT / "train.py", *sorted((ROOT / "benchmarks").glob("*.py"))]:
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for number, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                lines = [line for line in cell["source"] if not line.startswith("%")]
                yield f"{path.name}, cell {number}", "".join(lines)


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
    assert {"structperc.chain", "structperc.analysis", "structperc.training"} <= {module for _, module, _ in found}
    wrong = [one for one in found if not is_public(*one[1:])]
    assert [one for one in wrong if not one[0].startswith("benchmarks/") or one[1] not in INNER] == []
    assert {module for _, module, _ in wrong} == INNER


def test_files_and_packages():
    code = "import structperc.nn\nfrom structperc.nn.torchcrf import CRF\nfrom structperc.nn import CRF, subwords"
    assert [is_public(*one) for one in imported(code)] == [False, False, True, False]
