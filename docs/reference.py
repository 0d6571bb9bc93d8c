"""Writes the reference, the public names of every package as stubs: python docs/reference.py [FILE or -]

Without FILE it becomes docs/reference.md, with - it is printed. Headers and docstrings are cut out of the source,
nothing is imported. The names of a package are those of its `__init__`. A method is shown where it is first described:
with the base class if that has an entry, otherwise with the class that inherits it.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE, PAGE = "structperc", Path(__file__).with_suffix(".md")
HEAD = """# Reference

<!-- fmt: off -->

Written by `python docs/reference.py` out of the docstrings: change those, not this page. Names stand in the order in \
which data flows. Letters of shapes: B sequences, T tokens, L labels, K candidates, F features.
"""

Defined = ast.ClassDef | ast.FunctionDef


class Source:
    """A file of the package: what is defined at its top level, and where the names come from that it imports."""

    def __init__(self, path: Path) -> None:
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.tree = ast.parse("\n".join(self.lines))
        self.defined = {node.name: node for node in self.tree.body if isinstance(node, Defined)}
        stub = path.with_suffix(".pyi")
        self.lazy = dict(lazy_imports(stub)) if stub.is_file() else {}
        self.imported = {**dict(imports(self.tree)), **self.lazy}

    def constant(self, name: str) -> Any:
        """The value of a name that is assigned a literal at the top level, None without one."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                return ast.literal_eval(node.value)
        return None

    def public(self) -> list[str]:
        """Names that the file offers: of a package those it lists or imports on first use, else what it defines."""
        if listed := self.constant("__all__") or self.lazy:
            return list(listed)
        return [name for name in self.defined if not name.startswith("_")]

    def cut(self, first: int, last: int) -> list[str]:
        """Lines first, ..., last, from 1, without comments for the type checker."""
        return [line.partition("  # type: ignore")[0] for line in self.lines[first - 1 : last]]

    def header(self, node: Defined) -> list[str]:
        """Decorators and all lines up to the colon."""
        return self.cut(first_line(node), node.body[0].lineno - 1)

    def docstring(self, node: Defined) -> list[str]:
        """Its lines as they stand; none without one."""
        text = node.body[0]
        return self.cut(text.lineno, text.end_lineno or 0) if ast.get_docstring(node) else []

    def fields(self, node: ast.ClassDef) -> list[str]:
        """What stands between the docstring and the first method and has a type or a comment."""
        end = next((first_line(part) for part in node.body if isinstance(part, Defined)), (node.end_lineno or 0) + 1)
        lines = self.cut((node.body[0].end_lineno or 0) + 1, end - 1)
        return [line for line in lines if (":" in line or "#" in line) and not line.strip().startswith("_")]


def lazy_imports(stub: Path) -> Iterator[tuple[str, str]]:
    """(name, module) of every name that a package imports on first use."""
    package = ".".join(stub.parent.relative_to(ROOT).parts)
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((alias.name, f"{package}.{node.module}") for alias in node.names)


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, module) of every `from structperc... import name`, those for the type checker included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == PACKAGE:
            yield from ((alias.name, str(node.module)) for alias in node.names)


def first_line(node: Defined) -> int:
    """That of the node or of its first decorator."""
    return min(part.lineno for part in [node, *node.decorator_list])


@cache
def source(module: str) -> Source:
    """Of a module or package, by its dotted name."""
    path = ROOT.joinpath(*module.split("."))
    return Source(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


def place(module: str, name: str) -> tuple[Source, Defined] | None:
    """File and node that define what a module calls `name`; None for what is not of the package, or no definition."""
    here = source(module)
    if name in here.defined:
        return here, here.defined[name]
    return place(here.imported[name], name) if name in here.imported else None


def entries() -> dict[str, dict[str, tuple[Source, Defined]]]:
    """{package: {public path: where it is defined}}; what two packages offer stands in the earlier one."""
    found: dict[str, dict[str, tuple[Source, Defined]]] = {}
    seen: set[Defined] = set()
    packages = re.findall(r"^(\w+)  ", ast.get_docstring(source(PACKAGE).tree) or "", re.MULTILINE)
    for package in [*packages[: packages.index("cli")], "errors"]:
        module = f"{PACKAGE}.{package}"
        places = {f"{module}.{name}": place(module, name) for name in source(module).public()}
        found[package] = {path: at for path, at in places.items() if at is not None and at[1] not in seen}
        seen |= {node for _, node in found[package].values()}
    return found


def bases(here: Source, node: ast.ClassDef) -> list[tuple[Source, ast.ClassDef]]:
    """The classes of the package that a class is made from, with their files, nearest first."""
    found: list[tuple[Source, ast.ClassDef]] = []
    for name in map(ast.unparse, node.bases):
        at = (here, here.defined[name]) if name in here.defined else None
        if at is None and name in here.imported:
            at = place(here.imported[name], name)
        if at is not None and isinstance(at[1], ast.ClassDef):
            found += [(at[0], at[1]), *bases(at[0], at[1])]
    return found


def methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """The public methods that a class defines itself."""
    own = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    return {part.name: part for part in own if part.name == "__init__" or not part.name.startswith("_")}


def stub(here: Source, node: Defined, described: set[Defined]) -> list[str]:
    """Header and docstring; of a class also fields and methods, but those of bases that are `described`."""
    lines = [*here.header(node), *here.docstring(node)]
    if not isinstance(node, ast.ClassDef):
        return lines
    family = bases(here, node)
    known = {name for _, base in family if base in described for name in methods(base)} - {"__init__"}
    shown: dict[str, list[str]] = {}
    for file, kind in [(here, node), *((file, base) for file, base in family if base not in described)]:
        for name, method in methods(kind).items():
            if name not in known and (name != "__init__" or kind is node):
                shown.setdefault(name, [*file.header(method), *paragraph(file.docstring(method))])
    return [*lines, *here.fields(node), *(line for method in shown.values() for line in method)]


def paragraph(docstring: list[str]) -> list[str]:
    """The lines of a docstring up to its first empty one, closed."""
    if "" not in docstring:
        return docstring
    *lines, last = docstring[: docstring.index("")]
    return [*lines, f'{last}"""']


def anchor(path: str, links: Counter[str]) -> str:
    """How a link names the heading; the second one that differs in capitals alone has a number."""
    plain = path.replace(".", "").lower()
    links[plain] += 1
    return plain if links[plain] == 1 else f"{plain}-{links[plain] - 1}"


def page() -> str:
    """The text of the reference."""
    packages, links = entries(), Counter[str]()
    described = {node for names in packages.values() for _, node in names.values()}
    parts = [HEAD]
    for package, names in packages.items():
        index = " · ".join(f"[{path.rpartition('.')[2]}](#{anchor(path, links)})" for path in names)
        parts.append(f"## {package}\n\n{index}\n")
        for path, (here, node) in names.items():
            text = "\n".join(stub(here, node, described))
            parts.append(f"### {path}\n\n```python\n{text}\n```\n")
    return "\n".join(parts)


def write(target: str) -> None:
    """The reference into a file, or to standard output for "-"."""
    if target == "-":
        print(page(), end="")
    else:
        Path(target).write_text(page(), encoding="utf-8")
        print(f"written: {target}", file=sys.stderr)


if __name__ == "__main__":
    write(sys.argv[1] if len(sys.argv) > 1 else str(PAGE))
