"""The path of docs/get_started/train.md, from a file to labels, step by step, with what it prints."""

import re
import shlex
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from structperc.cli.main import main
from tests.docs.written import PAGES

QUIET = ["--trainer.enable_progress_bar=false", "--trainer.accelerator=cpu"]


def lines_without_numbers(text):
    return [re.sub(r"[\d.,]+(e-\d+)?", "0", " ".join(line.split())) for line in text.splitlines() if line.strip()]


def run(line):
    """What a command of the page prints."""
    if not line.startswith("structperc "):
        subprocess.run(["bash", "-c", line], check=True)
        return ""
    arguments = shlex.split(line)[1:]
    with redirect_stdout(StringIO()) as printed:
        assert main([*arguments, *(QUIET if arguments[0] == "fit" else [])]) == 0, line
    return printed.getvalue()


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """Of each block of output, what the page shows and what the commands before it print."""
    outputs, printed = [], ""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("visitor"))
        page = PAGES["get_started/train"]
        for language, text in re.findall(r"^```(python|bash|text|yaml)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
            if language == "python":
                with redirect_stdout(StringIO()) as said:
                    exec(compile(text, "train.md", "exec"), {})
                assert set(re.findall(r"^# (\[\[.*)$", text, re.MULTILINE)) <= set(said.getvalue().splitlines())
            elif language == "yaml":
                Path("words.yaml").write_text(text, encoding="utf-8")
            elif language == "bash":
                printed = "".join(run(line) for line in text.splitlines())
            elif printed:
                outputs.append((text, printed))
                printed = ""
    return outputs


def test_what_the_page_shows_is_printed(walked):
    assert len(walked) == 4
    for shown, printed in walked:
        missing = [line for line in lines_without_numbers(shown) if line not in lines_without_numbers(printed)]
        assert not missing


def test_scores_of_the_page(walked):
    for shown, printed in walked[1:]:
        for line in shown.splitlines():
            assert "seconds" in line or line in printed.splitlines()
