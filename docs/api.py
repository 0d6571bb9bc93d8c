"""Pages of the API: one page per package, written from the names of its `__init__` before Sphinx reads the pages.

Names are in the order of the data flow. A method is shown where it is first described: with the base class if that
has an entry, otherwise with the class that inherits it. Nothing here needs Sphinx.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from abc import ABC
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic

import structperc

PACKAGE = "structperc"
PAGES = Path(__file__).parent / "reference" / "api"
OTHERS = ["errors"]  # a module that the package's docstring does not list
PLAIN: dict[str, list[str]] = {}  # docstrings of properties that have no sections
LETTERS = "Letters of shapes: B sequences, T tokens, L labels, K candidates, F features."


# -- what is public -------------------------------------------------------------------------------------------


def packages() -> dict[str, str]:
    """{name: one line about it} of packages and modules, in the order of the data flow, without the command line."""
    lines = re.findall(r"^(\w+)  +(.*)$", str(structperc.__doc__), re.MULTILINE)
    named = {name: line for name, line in lines if name != "cli"}
    return {**named, **{name: first_line(import_module(f"{PACKAGE}.{name}")) for name in OTHERS}}


def public_names(module: Any) -> list[str]:
    """Names of `__all__`, or what a module without it defines itself."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    own = ((name, one) for name, one in vars(module).items() if not name.startswith("_"))
    return [name for name, one in own if getattr(one, "__module__", "") == module.__name__]


@cache
def entries() -> dict[str, dict[str, Any]]:
    """{package: {public path: object}}; what two packages export is described with the earlier one."""
    found: dict[str, dict[str, Any]] = {}
    seen: set[int] = set()
    for package in packages():
        module = import_module(f"{PACKAGE}.{package}")
        named = {f"{PACKAGE}.{package}.{name}": getattr(module, name) for name in public_names(module)}
        found[package] = {path: one for path, one in named.items() if callable(one) and id(one) not in seen}
        seen |= {id(one) for one in found[package].values()}
    return found


@cache
def paths() -> dict[int, str]:
    """{id of a public object: its public path}."""
    return {id(one): path for names in entries().values() for path, one in names.items()}


@cache
def class_names() -> dict[str, str]:
    """{name: public path} of unique names, such as MarginLoss or log_partition, and of all public paths."""
    known = {path: path for path in paths().values()}
    known |= {path: path for path in (f"{PACKAGE}.{name}" for name, found in entries().items() if found)}
    short: dict[str, list[str]] = {}
    for path in known:
        short.setdefault(path.rpartition(".")[2], []).append(path)
    return {
        **known,
        **{name: found[0] for name, found in short.items() if len(found) == 1 and (name[0].isupper() or "_" in name)},
    }


def target_of(name: str, module: str = "") -> str | None:
    """The public path that a name in backticks stands for: MarginLoss, Tagger.load, structperc.chain.viterbi.

    Names of functions need their package or, in a docstring, a function of the same `module`.
    """
    name = name.removesuffix("()")
    head, _, rest = name.partition(".")
    if name in class_names():
        return class_names()[name]
    if module and f"{module}.{name}" in class_names():
        return f"{module}.{name}"
    return f"{class_names()[head]}.{rest}" if head in class_names() and rest.isidentifier() else None


def found_object(name: str) -> Any:
    """What a dotted name of the package is; None for other names."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            found = getattr(found, part, None)
        return found
    return None


def first_line(one: Any) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(one) or "").partition("\n")[0]


def own_methods(kind: type) -> list[str]:
    """Public methods and properties of a class, without those of base classes that have an entry themselves."""
    described: set[str] = set()
    for base in kind.__mro__[1:]:
        if id(base) in paths() or not base.__module__.startswith(PACKAGE):
            described |= set(dir(base)) if id(base) in paths() else set()
    found: dict[str, None] = {}
    for base in kind.__mro__:
        if not base.__module__.startswith(PACKAGE) or (base is not kind and id(base) in paths()):
            continue
        for name, value in vars(base).items():
            method = isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value)
            written = inspect.isfunction(value) is False or value.__qualname__ != f"create_fn.<locals>.{name}"
            hook = name.startswith(("_", "on_"))  # the latter are hooks of Lightning
            if method and written and not hook and (base is kind or name not in described):
                found.setdefault(name)
    return list(found)


# -- pages ----------------------------------------------------------------------------------------------------


def introduction(module: Any) -> str:
    """The docstring of a package without the list of its files."""
    paragraphs = re.split(r"\n\s*\n", inspect.getdoc(module) or "")
    kept = [text for text in paragraphs if not re.match(r"\w+(\.py|/)?  +\S", text)]
    return "\n".join(as_rst("\n\n".join(kept).splitlines()))


def page(package: str, names: dict[str, Any]) -> str:
    """The page of one package: what it is for, a table of its names, and an entry for each."""
    module = f"{PACKAGE}.{package}"
    lines = [module, "=" * len(module), "", f".. module:: {module}", "", introduction(import_module(module)), ""]
    lines += [".. list-table::", "   :widths: 30 70", "   :class: api-names", ""]
    for path, one in names.items():
        lines += [f"   * - :py:obj:`~{path}`", f"     - {' '.join(as_rst([first_line(one)]))}"]
    for path, one in names.items():
        kind = "class" if inspect.isclass(one) else "function"
        if kind == "class" and issubclass(one, BaseException):
            kind = "exception"
        lines += ["", f".. auto{kind}:: {path}"]
        if kind == "class":
            lines += ["   :show-inheritance:"] if shown_bases(one.__bases__) else []
            methods = own_methods(one)
            lines += [f"   :members: {', '.join(methods)}"] if methods else []
    return "\n".join(lines) + "\n"


def shown_bases(bases: Iterable[type]) -> list[type]:
    """Base classes that say something."""
    return [base for base in bases if base not in (object, ABC, Generic)]


def contents() -> str:
    """The page that lists the packages."""
    rows = [
        f"   * - :doc:`{PACKAGE}.{package} <{package}>`\n     - {' '.join(as_rst([line]))}"
        for package, line in packages().items()
        if entries()[package]
    ]
    order = "\n".join(f"   {package}" for package, names in entries().items() if names)
    head = f"API\n===\n\nPackages in the order in which data flows. {LETTERS}\n"
    table = "\n".join([".. list-table::", "   :widths: 30 70", "", *rows])
    return f"{head}\n{table}\n\n.. toctree::\n   :hidden:\n\n{order}\n"


def write_pages(*_: Any) -> None:
    """Write docs/reference/api; files that are right already are not touched, so that Sphinx does not read them."""
    PAGES.mkdir(parents=True, exist_ok=True)
    wanted = {f"{package}.rst": page(package, names) for package, names in entries().items() if names}
    wanted["index.rst"] = contents()
    for name, text in wanted.items():
        file = PAGES / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    for file in PAGES.glob("*.rst"):
        if file.name not in wanted:
            file.unlink()


# -- docstrings: Markdown as the code base writes it, in reStructuredText --------------------------------------


def escaped(line: str) -> str:
    """A line of prose with characters escaped that mean nothing in Markdown, except within backticks."""
    parts = re.split(r"(`[^`]*`)", line)
    for n in range(0, len(parts), 2):
        parts[n] = re.sub(r"(?<=\bfile):(?=\w)|(?<!^)\*|\*(?! )|\||(?<=\w)_(?!\w)", r"\\\g<0>", parts[n])
    for n in range(1, len(parts), 2):
        parts[n] = parts[n].replace("\\", "\\\\")
    indent = re.match(r" *", line)[0]  # type: ignore[index]
    return indent + re.sub(r"^\\\*(?= )", "*", "".join(parts)[len(indent) :])


def as_rst(lines: list[str]) -> list[str]:
    """Lines of a docstring with fenced code as code blocks and prose escaped; examples (>>>) are left alone."""
    found: list[str] = []
    fence, example = "", False
    for line in lines:
        text = line.strip()
        if text.startswith("```"):
            indent = line[: len(line) - len(line.lstrip())]
            found += [] if fence else [f"{indent}.. code-block:: {text[3:] or 'text'}", ""]
            fence = "" if fence else "   "
            continue
        example = text.startswith(">>>") or (example and bool(text))
        found.append(fence + line if fence else line if example else escaped(line))
    return found


def field_lines(kind: type) -> Iterator[str]:
    """A section "Attributes" with the fields of a named tuple or data class, described by the comments beside them."""
    names = getattr(kind, "_fields", None) or [one.name for one in dataclasses.fields(kind)]  # type: ignore[arg-type]
    source = textwrap.dedent(inspect.getsource(kind))
    lines = source.splitlines()
    yield from ("", "Attributes:")
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) in names:
            comment = lines[(node.end_lineno or 1) - 1].partition("  # ")[2]
            comment = "" if comment.startswith("type:") else comment
            yield f"    {ast.unparse(node.target)} ({ast.unparse(node.annotation)}): {comment}"


def process_docstring(_: Any, kind: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    """Change a docstring before napoleon reads its sections."""
    fields = kind == "class" and (dataclasses.is_dataclass(one) or hasattr(one, "_fields"))
    if fields and not any(line.strip() == "Attributes:" for line in lines) and PACKAGE in one.__module__:
        end = next((n for n, line in enumerate(lines) if re.match(r"(Examples?|Raises|Returns):", line)), len(lines))
        lines[end:end] = [*field_lines(one), ""]
    lines[:] = as_rst(lines)
    if kind == "property" and not any(re.match(r"(Args|Returns|Raises|Examples?):", line) for line in lines):
        PLAIN[name] = list(lines)


def restore_property(_: Any, kind: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    """Undo what napoleon does with a property: text before a colon becomes its type."""
    lines[:] = PLAIN.pop(name, lines)


def process_bases(_: Any, name: str, one: Any, options: Any, bases: list[type]) -> None:
    """Leave out base classes that say nothing."""
    bases[:] = shown_bases(bases) or bases


def process_signature(_: Any, kind: str, name: str, one: Any, options: Any, signature: str, returns: str) -> Any:
    """Leave out the parameters of `torch.nn.Module`, which say nothing."""
    return ("()" if kind == "class" and signature == "(*args: Any, **kwargs: Any)" else signature), returns
