"""Notebooks as pages of the site: copies in docs/tutorials, and links between pages and files of the repository."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent


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


def setup(app: Any) -> None:
    """Connect both to Sphinx."""
    app.connect("config-inited", copy_notebooks)
    app.connect("source-read", adapt_links)
