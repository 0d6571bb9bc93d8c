"""Writes docs/reference.md, the public names of every stage as stubs: python docs/reference.py

Headers and docstrings are cut out of the source, nothing is imported. A stage's names are those of its `__all__`, or of
`OTHERS` where it has none. Methods that do again what a base class of the package says are left out.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, PAGE = ROOT / "structperc", Path(__file__).with_suffix(".md")

STAGES = (
    "structures",
    "data",
    "features",
    "encoders",
    "scorers",
    "chain",
    "nonlocal_features",
    "criteria",
    "optim",
    "rerankers",
    "guided",
    "metrics",
    "training",
)
OTHERS = {
    "structures": {"structures": "SparseFeatures Words Batch Lattice Candidates Scored", "errors": "InputError"},
    "data": {
        "data.conll": "read_conll write_conll",
        "data.conllu": "read_conllu",
        "data.hub": "read_hub",
        "data.synthetic": "synthetic_splits synthetic_corpus local_ceiling",
        "data.rows": "rows",
        "data.corpus": "Corpus",
        "data.normalise": "normalise_labels rename_types",
        "data.labels": "Span spans convert first_violation repair LabelSet",
        "data.lexicon": "LowerCaseLexicon",
    },
    "training": {
        "training.datamodule": "SequenceData",
        "training.sources": "Conll Conllu Hub Synthetic",
        "training.sequence_tagger": "SequenceTagger",
        "training.tagger": "Tagger",
        "training.guided_tagger": "GuidedTagger",
        "training.reranker": "Reranker",
        "training.global_reranker": "GlobalReranker",
        "training.jackknife": "JackKnife",
        "training.inference": "Inference LatticeInference Labelling",
        "training.store": "Store",
        "training.bayes_point": "BayesPoint",
        "training.stopping": "StopWhenSettled",
    },
}
HEAD = """# Reference

<!-- fmt: off -->

Written by `python docs/reference.py` out of the docstrings: change those, not this page. Names stand in the order in \
which data flows. Letters of shapes: B sequences, T tokens, L labels, K candidates, F features.
"""

Defined = ast.ClassDef | ast.FunctionDef


class Source:
    """A file of the package and what is defined at its top level."""

    def __init__(self, path: Path) -> None:
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.tree = ast.parse("\n".join(self.lines))
        self.defined = {node.name: node for node in self.tree.body if isinstance(node, Defined)}

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
        behind = next((first_line(part) for part in node.body if isinstance(part, Defined)), (node.end_lineno or 0) + 1)
        lines = self.cut((node.body[0].end_lineno or 0) + 1, behind - 1)
        return [line for line in lines if (":" in line or "#" in line) and not line.strip().startswith("_")]


def first_line(node: Defined) -> int:
    """That of the node or of its first decorator."""
    return min(part.lineno for part in [node, *node.decorator_list])


@cache
def source(module: str) -> Source:
    """Of a module or package, named from within structperc."""
    path = PACKAGE.joinpath(*module.split("."))
    return Source(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


@cache
def classes() -> dict[str, ast.ClassDef]:
    """All classes of the package by name."""
    nodes = (node for path in sorted(PACKAGE.rglob("*.py")) for node in Source(path).defined.values())
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


def inherited(node: ast.ClassDef) -> set[str]:
    """Names of the methods that its bases within the package have."""
    bases = [classes()[name] for base in node.bases if (name := ast.unparse(base)) in classes() and name != node.name]
    own = {part.name for base in bases for part in base.body if isinstance(part, ast.FunctionDef)}
    return own.union(*map(inherited, bases))


def public_names(stage: str) -> Iterator[tuple[str, str, str]]:
    """(path that a configuration names, module, name) of what a stage offers, in its order."""
    if stage in OTHERS:
        for module, names in OTHERS[stage].items():
            yield from ((f"structperc.{module}.{name}", module, name) for name in names.split())
        return
    places: dict[str, str] = {}
    for node in source(stage).tree.body:
        if isinstance(node, ast.ImportFrom):
            places |= {alias.name: str(node.module).partition(".")[2] for alias in node.names}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            for name in ast.literal_eval(node.value):
                yield f"structperc.{stage}.{name}", places[name], name


def stub(module: Source, node: Defined) -> list[str]:
    """Header and docstring; of a class also its fields, and its methods with the first paragraphs of theirs."""
    lines = [*module.header(node), *module.docstring(node)]
    if isinstance(node, ast.ClassDef):
        lines += module.fields(node)
        known = inherited(node) - {"__init__"}
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name not in known and shown(method.name):
                lines += [*module.header(method), *paragraph(module.docstring(method))]
    return lines


def shown(name: str) -> bool:
    """Whether a method is public."""
    return name == "__init__" or not name.startswith("_")


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
    """The text of docs/reference.md."""
    parts, links = [HEAD], Counter[str]()
    for stage in STAGES:
        names = list(public_names(stage))
        index = " · ".join(f"[{name}](#{anchor(path, links)})" for path, _, name in names)
        parts.append(f"## {stage}\n\n{index}\n")
        for path, module, name in names:
            text = "\n".join(stub(source(module), source(module).defined[name]))
            parts.append(f"### {path}\n\n```python\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")
