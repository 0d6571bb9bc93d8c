"""A folder in which the pages' commands and code run, as a reader would run them."""

import random
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch

from structperc.cli.main import main
from tests.docs.written import ROOT, blocks, blocks_with_output

GIVEN: dict[str, dict[str, Any]] = {  # names that the code of a page reads and does not define
    "README": {
        "logits": torch.randn(2, 5, 3),
        "gold": torch.tensor([[0, 1, 2, 0, 0], [1, 0, 0, 0, 0]]),
        "mask": torch.tensor([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], dtype=torch.bool),
    }
}
QUIET = ["--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false", "--trainer.accelerator=cpu"]


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Iterator[Path]:
    """The current folder, with what pages speak of: own.py, train.txt, corpus, template and lists."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "configs").symlink_to(ROOT / "configs")
    (folder / "corpus").mkdir()
    for place in ("train.txt", "corpus/train.txt", "corpus/dev.txt"):
        (folder / place).write_text(training_text(random.Random(5)), encoding="utf-8")
    (folder / "new.txt").write_text("Anna\nmet\nBo\n", encoding="utf-8")
    (folder / "template").write_text("U00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[1,0]\nB\n", encoding="utf-8")
    (folder / "cities.txt").write_text("new york\nrome\n", encoding="utf-8")
    (folder / "clusters.tsv").write_text("0010\tAnna\t4\n0111\tmet\t3\n", encoding="utf-8")
    own = [block for page in ("how_to/add_a_part", "how_to/own_models") for block in blocks(page, "python")]
    (folder / "own.py").write_text("\n".join(own), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        yield folder


def training_text(draw: random.Random) -> str:
    """Forty sentences; two words are labelled by their first letter, the third at random."""
    words = [draw.choices(["Anna", "Bo", "met", "left"], k=draw.randint(1, 6)) for _ in range(40)]
    lines = [[f"{word} {draw.choice('XY') if word == 'Bo' else word[0]}\n" for word in sentence] for sentence in words]
    return "\n".join("".join(sentence) for sentence in lines)


@pytest.fixture(scope="module")
def structperc_says(here) -> Callable[..., str]:
    """Runs a command that must succeed, trainings without bars; -> what it prints."""

    def run(*arguments: str) -> str:
        with redirect_stdout(StringIO()) as printed:
            assert main([*arguments, *(QUIET if arguments[0] == "fit" else [])]) == 0
        return printed.getvalue()

    return run


@pytest.fixture(scope="module")
def ran(here) -> Callable[[str], dict[str, Any]]:
    """Runs the code of a page from top to bottom, once; -> its names.

    `print(...)  # text` must print that text, and code before a block of text must print this block.
    """

    @cache
    def run(page: str) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": page, **GIVEN.get(page, {})}
        torch.manual_seed(0)
        for number, (code, text) in enumerate(blocks_with_output(page)):
            with redirect_stdout(StringIO()) as printed:
                exec(compile(code, f"{page}.md, block {number}", "exec"), names)
            if expected := re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE):
                assert printed.getvalue().splitlines() == expected
            assert text in ("", printed.getvalue())
        return names

    return run
