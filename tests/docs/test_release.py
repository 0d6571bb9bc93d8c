"""Files of a release: citation, changelog, version."""

import re
import tomllib

import yaml

from structperc import __version__
from tests.docs.written import PAGES, ROOT


def test_citation():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= cited.keys()
    assert cited["version"] == __version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["license"] == project["license"]
    assert cited["title"] == project["name"]


def test_changelog():
    """The newest section is Unreleased or the present version; sections have the headings of Keep a Changelog."""
    versions = re.findall(r"^## \[(.*?)\]", PAGES["CHANGELOG"], re.MULTILINE)
    assert versions[0] in ("Unreleased", __version__)
    headings = set(re.findall(r"^### (.*)$", PAGES["CHANGELOG"], re.MULTILINE))
    assert headings <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
