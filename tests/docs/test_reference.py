"""The reference is built out of the source, whole, by the command that the pages name."""

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

import pytest

import structperc
from structperc.criteria import CRFLoss
from tests.docs.written import DOCS, anchors, resolved


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> str:
    """The reference as the command writes it into a file."""
    file = tmp_path_factory.mktemp("reference") / "reference.md"
    command = [sys.executable, str(DOCS / "reference.py"), str(file)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return file.read_text(encoding="utf-8")


def test_the_reference_has_every_public_name_once(reference):
    headings = re.findall(r"^### (structperc\..*)$", reference, re.MULTILINE)
    assert len(set(headings)) == len(headings)
    described = [resolved(name) for name in headings]
    rooms = [found for name in structperc.__all__ if isinstance(found := getattr(structperc, name), ModuleType)]
    offered = [getattr(room, name) for room in rooms for name in getattr(room, "__all__", ())]
    assert offered
    assert not [one for one in filter(callable, offered) if not any(one is other for other in described)]


def test_reference(reference):
    links, headings = re.findall(r"\]\(#([^)]+)\)", reference), re.findall(r"^### .*$", reference, re.MULTILINE)
    assert len(links) == len(headings)
    assert set(links) <= anchors(reference)
    stubs = dict(re.findall(r"^### structperc\.(\S+)\n\n```python\n(.*?)^```", reference, re.MULTILINE | re.DOTALL))
    assert CRFLoss.__doc__ in stubs["criteria.CRFLoss"]
    assert "unary: Tensor  # (B, T, L)" in stubs["structures.Lattice"]
    tagger = "".join(
        text for name, text in stubs.items() if name.startswith(("predictor.", "taggers.")) and "Guided" not in name
    )
    for method in ("tag", "kbest", "marginals", "save", "load", "decode"):  # some are of classes without an entry
        assert re.search(rf"^    def {method}\(", tagger, re.MULTILINE), method
    assert "def losses_and_updates" in stubs["criteria.Criterion"]
    assert "def forward" not in stubs["criteria.MarginLoss"]  # it is told with the base class


def test_the_reference_can_be_printed(reference, capsys):
    spec = spec_from_file_location("reference", DOCS / "reference.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    script.write("-")
    assert capsys.readouterr().out == reference
