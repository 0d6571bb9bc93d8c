"""What is written in README and docs: pages, their code, configurations and commands, and the anchors of headings."""

import re
import shlex
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import structperc

ROOT = Path(__file__).parents[2]
DOCS, QUICKSTART = ROOT / "docs", ROOT / "configs" / "quickstart.yaml"
_BELOW = [path.relative_to(DOCS).with_suffix("").as_posix() for path in sorted(DOCS.rglob("*.md"))]
NAMES = [n for n in _BELOW if not n.startswith("_")]  # such as get_started/train
FILES = {name: ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")}
FILES |= {n: DOCS / f"{n}.md" for n in NAMES}
PAGES = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}


def blocks(page: str, language: str) -> list[str]:
    """The code of a page in one language, block by block."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)


def blocks_with_output(page: str) -> list[tuple[str, str]]:
    """The Python code of a page, block by block, with the block of text right after it, or ""."""
    return re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", PAGES[page], re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """Arguments of every `structperc ...` of a page, in its order: those of blocks, then those within sentences."""
    lines = [line for block in blocks(page, "bash") for line in block.replace("\\\n", " ").splitlines()]
    lines = [part.strip().replace("python train.py", "structperc") for line in lines for part in line.split("&&")]
    inline = re.findall(r"`((?:structperc|python train\.py) [^`]+)`", PAGES[page])
    lines += [line.replace("python train.py", "structperc") for line in inline]
    split = [shlex.split(re.sub(r"\s#.*", "", line)) for line in lines if line.startswith("structperc ")]
    return [words[1:] for words in split]


def resolved(name: str) -> Any:
    """What users get for a dotted name: a room's own name before the file that is called the same."""
    found: Any = structperc
    for n, part in enumerate(name.split(".")[1:], 2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(".".join(name.split(".")[:n]))
    return found


def anchors(text: str) -> set[str]:
    """Headings as links name them."""
    found: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        found[re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")] += 1
    return {f"{name}-{n}" if n else name for name, count in found.items() for n in range(count)}
