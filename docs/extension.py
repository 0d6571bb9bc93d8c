"""What this site adds to Sphinx: pages of the API, notebooks as pages, links between code and pages, formulas."""

import html
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.domains.python import PyObject
from sphinx.util import logging

from docs.api import (
    PACKAGE,
    class_names,
    found_object,
    paths,
    process_bases,
    process_docstring,
    process_signature,
    restore_property,
    target_of,
    write_pages,
)

HERE = Path(__file__).parent
ROOT = HERE.parent

# -- notebooks, and links between them and the pages -----------------------------------------------------------


def copy_notebooks(*_: Any) -> None:
    """Copy the notebooks into docs/tutorials, where Sphinx finds them, and delete copies of removed ones."""
    wanted = {path.name: path for path in (ROOT / "notebooks").glob("*.ipynb")}
    for name, path in wanted.items():
        copy = HERE / "tutorials" / name
        if not copy.is_file() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)
    for copy in (HERE / "tutorials").glob("*.ipynb"):
        if copy.name not in wanted:
            copy.unlink()


def adapt_links(_: Any, page: str, content: list[str]) -> None:
    """Change links between docs and notebooks, which are in other folders on the site than in the repository."""
    folder = Path(page).parent
    if "](../docs/" in content[0] and (ROOT / "notebooks" / f"{Path(page).name}.ipynb").is_file():
        content[0] = content[0].replace("](../docs/", "](../")

    def link(match: re.Match[str]) -> str:
        return f"]({os.path.relpath(f'tutorials/{match[1]}', folder)})"

    content[0] = re.sub(r"\]\((?:\.\./)+notebooks/(\w+\.ipynb)\)", link, content[0])
    content[0] = re.sub(r"(?<!!)\[([^]]+)\]\(((?:\.\./)[^)#]*)[^)]*\)", text_for_others(folder), content[0])


def text_for_others(folder: Path) -> Callable[[re.Match[str]], str]:
    """Replaces links to folders and pages that are in the repository, but not on the site, by their text."""

    def replace(match: re.Match[str]) -> str:
        target = (HERE / folder / match[2]).resolve()
        other = target.is_dir() or (target.suffix == ".md" and HERE not in target.parents)
        return match[1] if other and target.exists() else match[0]

    return replace


# -- links from names in backticks to the API ------------------------------------------------------------------


def link_or_code(text: str, page: str, module: str = "") -> nodes.Node:
    """Code, with a link to the API if it is the name of something there."""
    code = nodes.literal(text, text, classes=["code"])
    target = target_of(text, module)
    if target is None:
        return code
    options = {"refdomain": "py", "reftype": "obj", "refexplicit": True, "optional": True}
    return pending_xref("", code, refdoc=page, reftarget=target, **options)


def role(_: str, raw: str, text: str, line: int, inliner: Any, *rest: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """The role of text in single backticks within docstrings."""
    env = inliner.document.settings.env
    return [link_or_code(nodes.unescape(text), env.docname, env.ref_context.get("py:module", ""))], []


def link_names(app: Any, document: nodes.document) -> None:
    """Link the first mention of each public name on a page that is written by hand."""
    if app.env.docname.startswith("reference/api/"):
        return
    seen: set[str] = set()
    for code in list(document.findall(nodes.literal)):
        target = target_of(code.astext())
        outer = code.parent
        if target and target not in seen and not isinstance(outer, nodes.title | nodes.reference | pending_xref):
            seen.add(target)
            outer.replace(code, link_or_code(code.astext(), app.env.docname))


def resolve(app: Any, env: Any, node: Any, text: Any) -> Any:
    """A link for a name that is public under another path, text for a type that is not public."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    path = class_names().get(target)
    known = found_object(target) if path is None and target.startswith(f"{PACKAGE}.") else None
    path = path or paths().get(id(known))
    if path is not None and path != target:
        domain = env.get_domain("py")
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", path, node, text)
    return text if node.get("optional") or known is not None else None


# -- formulas --------------------------------------------------------------------------------------------------


def mathml(formula: str, node: Any, *, block: bool) -> str:
    """A formula as MathML, which browsers show without scripts or fonts from elsewhere."""
    formula = formula.replace(r"\operatorname*", r"\operatorname").replace(r"arg\,m", "arg m")
    if block and r"\\" in formula and r"\begin" not in formula:
        formula = rf"\begin{{aligned}}{formula}\end{{aligned}}"
    try:
        return re.sub(r"<mo>([‖|])</mo>", r'<mo stretchy="false">\1</mo>', str(tex2mathml(formula, as_block=block)))
    except Exception as error:
        logging.getLogger(__name__).warning("formula %s: %s", formula, error, location=node)
        return html.escape(formula)


def inline_formula(writer: Any, node: Any) -> None:
    """Write a formula within a sentence."""
    writer.body.append(mathml(node.astext(), node, block=False))
    raise nodes.SkipNode


def displayed_formula(writer: Any, node: Any) -> None:
    """Write a formula on a line of its own."""
    writer.body.append(f'<div class="math">{mathml(node.astext(), node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Connect all of it to Sphinx."""
    for field in PyObject.doc_field_types:
        field.label = "Attributes" if field.name == "variable" else field.label
    app.connect("config-inited", write_pages)
    app.connect("config-inited", copy_notebooks)
    app.connect("source-read", adapt_links)
    app.connect("autodoc-process-docstring", process_docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", restore_property, priority=600)  # after napoleon
    app.connect("autodoc-process-bases", process_bases)
    app.connect("autodoc-process-signature", process_signature)
    app.add_role("api", role)
    app.connect("doctree-read", link_names)
    app.connect("missing-reference", resolve)
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
