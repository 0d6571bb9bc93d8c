"""The folders are stages of one flow: imports point upstream; the core needs neither Lightning nor datasets."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import structperc

PACKAGE = Path(structperc.__file__).parent
PACKAGES = (
    ("progress",),
    ("kernels",),
    ("ragged",),
    ("spelling",),
    ("structures", "errors", "torch_internals", "lightning_internals", "signals", "version"),
    ("user_code",),
    ("constructors", "compiled_forms"),
    ("process_pool",),
    ("packaged_configs",),
    ("ops",),
    ("text",),
    ("data",),
    ("features",),
    ("predictor",),
    ("encoders",),
    ("scorers",),
    ("chain",),
    ("nonlocal_features",),
    ("criteria",),
    ("builder",),
    ("nn",),
    ("optim",),
    ("online",),
    ("guided",),
    ("reports",),
    ("metrics",),
    ("datamodules",),
    ("models",),
    ("taggers",),
    ("loading",),
    ("tagging",),
    ("reranking",),
    ("training",),
    ("experiments",),
    ("analysis",),
    ("serving",),
    ("sklearn",),
    ("cli",),
    ("__main__", "__init__"),
)
RANK = {name: rank for rank, names in enumerate(PACKAGES) for name in names}
READERS = {"hub_datasets"}  # modules of data that need `datasets` where they are imported
BARS = {"reports.training_progress", "lightning_internals"}  # of Lightning's trainers
SECOND_MODELS = ("boosting", "candidate_lists", "local_score", "ranker", "voted_perceptron")
OWN = f"{PACKAGE.name}."
FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = [".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in FILES]

BLOCKED = """
import importlib, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pytorch_lightning", "lightning", "datasets"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
for name in sys.argv[1:]:
    importlib.import_module(name)
for name in ("structperc.taggers.tagger", "structperc.data.hub_datasets"):
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name, error)
"""


@cache
def parsed(path: Path) -> ast.Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if (stub := path.with_suffix(".pyi")).is_file():  # names that are imported on first use
        package = ".".join([PACKAGE.name, *path.parent.relative_to(PACKAGE).parts])
        lines = stub.read_text(encoding="utf-8").splitlines()
        lines = [
            line.replace("from .", f"from {package}.").replace(f"{package}. import", f"{package} import")
            for line in lines
        ]
        tree.body += ast.parse("\n    ".join(["def _lazy():", *lines])).body
    return tree


@cache
def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """All of a file, wherever they stand."""
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, "stage" or "stage.module...") of every import from this package."""
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            inside = node.module == PACKAGE.name
            names = [f"{node.module}.{alias.name}" for alias in node.names] if inside else [str(node.module)]
        for name in names:
            package, _, rest = name.partition(".")
            if package == PACKAGE.name:
                yield node.lineno, rest or "__init__"


def room(name: str) -> str:
    return name.partition(".")[0]


def documented(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The module, its public classes and functions, and the public methods of these classes."""
    yield "module", tree
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, node
            for part in node.body if isinstance(node, ast.ClassDef) else []:
                if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
                    yield f"{node.name}.{part.name}", part


def test_the_walk_finds_the_package():
    assert {"structures", "chain.viterbi", "taggers.tagger", "cli.main"} <= set(NAMES)
    tagger = PACKAGE / "taggers" / "tagger.py"
    assert {"scorers", "criteria", "chain"} <= {room(name) for _, name in imported(tagger)}


def test_every_module_has_a_package():
    assert {room(name) for name in NAMES} <= RANK.keys()


def test_imports_point_upstream():
    wrong = [
        f"{path.relative_to(PACKAGE.parent)}:{line} imports {other}"
        for path, name in zip(FILES, NAMES, strict=True)
        for line, other in imported(path)
        if RANK.get(room(other), len(PACKAGES)) > RANK[room(name)]
        or (RANK[room(other)] == RANK[room(name)] and room(other) != room(name))
    ]
    assert wrong == []


def loaded_at_once(path: Path) -> set[str]:
    """Names of modules, ours and others, that a file imports when it is imported itself."""
    own = [node for node in parsed(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return {node.module or "" for node in own if isinstance(node, ast.ImportFrom)} | {
        alias.name for node in own if isinstance(node, ast.Import) for alias in node.names
    }


def test_programs_without_datasets():
    """Its import takes half a second, and what reads a cache does without it."""
    loaded = {name: loaded_at_once(path) for path, name in zip(FILES, NAMES, strict=True)}
    need_it = {name for name, modules in loaded.items() if "datasets" in modules}
    assert need_it == {f"data.{reader}" for reader in READERS}
    assert {room(name) for name, modules in loaded.items() if modules & {OWN + one for one in need_it}} <= {"sklearn"}


def modules_imported(path: Path) -> set[str]:
    """Modules and packages of ours, as they are named in NAMES, that a file names in imports of any kind.

    Those for type checkers are among them, and those within functions.
    """
    known = {name.removesuffix(".__init__"): name for name in NAMES}
    found = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            asked = [alias.name for alias in node.names]
        else:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            asked = [one if one.removeprefix(OWN) in known else str(node.module) for one in inside]
        found |= {known[one.removeprefix(OWN)] for one in asked if one.removeprefix(OWN) in known}
    return found


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which leads to all of its group by imports."""

    def reached(start: str) -> set[str]:
        found, open_ = set(), [start]
        while open_:
            new = imports[open_.pop()] - found
            found |= new
            open_ += new
        return found

    reach = {name: reached(name) for name in imports}
    groups = {frozenset(other for other in reach[name] if name in reach[other]) for name in imports}
    return sorted(sorted(group) for group in groups if group)


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_no_modules_import_each_other_in_a_circle():
    imports = {name: modules_imported(path) - {name} for name, path in zip(NAMES, FILES, strict=True)}
    assert {"data.labels", "chain.__init__"} <= imports["nn.candidate_scorer"]
    assert "taggers.tagger" in imports["taggers.__init__"]
    assert circles(imports) == []


def test_size_of_packages():
    lines = Counter()
    for path, name in zip(FILES, NAMES, strict=True):
        lines[room(name)] += len(path.read_text(encoding="utf-8").splitlines())
    most = 0.15 * lines.total()
    assert {room: n for room, n in lines.items() if n > most} == {}


def core_modules() -> list[str]:
    """All modules of the rooms before those of Lightning, without the readers, and later ones that need neither."""
    kept = [
        name
        for name in NAMES
        if RANK[room(name)] < RANK["datamodules"]
        or room(name) == "tagging"
        or name in ("cli.__init__", "cli.main", "__init__")
    ]
    kept = [name for name in kept if not (room(name) == "data" and name.rpartition(".")[2] in READERS)]
    kept = [name for name in kept if name not in BARS]
    kept += [f"reranking.{name}" for name in SECOND_MODELS]
    return [f"{PACKAGE.name}.{name}".removesuffix(".__init__") for name in kept]


def test_core_without_lightning_and_datasets():
    """In a new process, which then says that what needs one of them cannot be imported."""
    modules = core_modules()
    packages = {"structperc"} | {f"structperc.{name}" for name in ("chain", "criteria", "optim", "scorers")}
    packages |= {"structperc.features", "structperc.metrics", "structperc.data.labels", "structperc.data.corpus"}
    assert packages <= set(modules)
    command = [sys.executable, "-c", BLOCKED, *modules]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    tagger, hub = done.stdout.splitlines()
    assert tagger == "structperc.taggers.tagger pytorch_lightning is blocked"
    assert hub == "structperc.data.hub_datasets datasets is blocked"


def test_names_of_files():
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "types", "nonlocal", "base_utils"}
    assert not {path.stem for path in [*FILES, *PACKAGE.rglob("*/")]} & vague


def test_public_names_are_documented():
    bare = [
        f"{path.relative_to(PACKAGE.parent)}: {name}"
        for path in FILES
        for name, node in documented(parsed(path))
        if not ast.get_docstring(node)  # type: ignore[arg-type]
    ]
    assert bare == []


def test_lazy_names():
    for name in structperc.__all__:
        assert structperc.__getattr__(name) is getattr(structperc, name)
    assert {"Tagger", "chain", "taggers"} <= set(structperc.__all__) == set(dir(structperc))
    with pytest.raises(AttributeError, match="nothing"):
        structperc.nothing  # noqa: B018
