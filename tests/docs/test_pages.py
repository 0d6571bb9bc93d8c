"""The pages are true: their code runs and prints what it says; configurations, names, files and links are there."""

import ast
import re
import tomllib
from inspect import signature

import pytest
import yaml

import structperc
from structperc import Tagger
from structperc.datamodules import SequenceDataModule
from structperc.experiments.experiment import dry_run
from structperc.experiments.study_file import read_study
from structperc.packaged_configs import PREFIX
from structperc.training.overlays import read_configuration
from tests.docs.written import FILES, PAGES, QUICKSTART, ROOT, anchors, blocks, resolved

TESTED_IN = {  # tests that run the code of pages which needs a model or files, or build other configurations
    "docs/test_commands.py": "README get_started/tag how_to/confidence how_to/dictionaries how_to/precision_and_recall "
    "how_to/share_models",
    "docs/test_get_started.py": "get_started/train",
    "docs/test_head.py": "get_started/head how_to/lora how_to/token_tagger",
    "docs/test_migration.py": "how_to/migrate",
    "docs/test_own_parts.py": "how_to/add_a_part how_to/own_models",
    "docs/test_pages.py": "how_to/studies reference/configuration",
    "docs/test_serving.py": "how_to/serve",
    "chain/test_exportable.py": "how_to/export",
    "nn/test_token_decoding.py": "how_to/decode_tokens",
    "nonlocal_features/test_own_feature.py": "how_to/nonlocal_features",
}
NEEDS_RAY, OUTLINE = "how_to/processes_and_gpus", "how_to/rerank"  # not run, not whole
ELSEWHERE = {page for pages in TESTED_IN.values() for page in pages.split()}
RUN = [page for page in PAGES if blocks(page, "python") and page not in {*ELSEWHERE, NEEDS_RAY}]
OTHERS = {"how_to/studies", "reference/configuration", NEEDS_RAY, OUTLINE}
OVERLAYS = [page for page in PAGES if blocks(page, "yaml") and page not in OTHERS]
BASES = {"how_to/guided_tagging": "pkg:overlays/data#embedded"}  # others: the quickstart
BEFORE = {  # of a page and block, the blocks that it says it comes after
    ("how_to/lbfgs_and_mce", number): before
    for number, before in {1: (0,), 2: (0,), 4: (3,), 5: (3,), 6: (0, 3), 7: (0,)}.items()
} | {("how_to/segments", 2): (0,)}

each_page = pytest.mark.parametrize("page", PAGES)


@pytest.mark.parametrize("page", RUN)
def test_code_of_pages(page, ran):
    assert ran(page)


@pytest.mark.usefixtures("parts_made_once")
@pytest.mark.parametrize(("page", "number"), [(page, n) for page in OVERLAYS for n in range(len(blocks(page, "yaml")))])
def test_configurations_are_accepted_and_built(page, number, here):
    """Each as an overlay to its base, with the blocks of the page that it says it comes after."""
    parts = [*BEFORE.get((page, number), ()), number]
    files = [str(BASES.get(page, QUICKSTART))]
    for part in parts:
        (here / f"overlay{part}.yaml").write_text(blocks(page, "yaml")[part], encoding="utf-8")
        files.append(f"overlay{part}.yaml")
    options = [option for file in files for option in ("-c", file)]
    dry_run([*options, "--trainer.default_root_dir=runs", "--trainer.accelerator=cpu"])


@pytest.mark.parametrize("file", TESTED_IN)
def test_other_pages_are_tested(file):
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert all(page.split("/")[-1] in text for page in TESTED_IN[file].split())


@pytest.mark.parametrize("page", [NEEDS_RAY, OUTLINE])
def test_blocks_that_are_not_run_can_be_read(page):
    for code in blocks(page, "python"):
        compile(code, page, "exec")
    assert all(map(yaml.safe_load, blocks(page, "yaml")))


def test_modules_and_extras_of_commands_exist():
    """Of `python -m NAME` and `pip install .[EXTRA]`."""
    text = "\n".join(PAGES.values())
    for name in re.findall(r"python -m ((?:benchmarks|docs|structperc)[\w.]*\w|structperc)", text):
        assert (ROOT / (file := name.replace(".", "/"))).is_dir() or (ROOT / f"{file}.py").is_file(), name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extras in re.findall(r"pip install (?:-e )?['\"](?:\.|structperc)\[([\w,]+)\]", text):
        assert set(extras.split(",")) <= project["optional-dependencies"].keys()


def test_studies_of_the_page(here):
    """The first is a study, two are parts with further texts, then one names others, and the last has curves."""
    own, further, foreign, several, curves = blocks("how_to/studies", "yaml")
    (here / "study.yaml").write_text(own, encoding="utf-8")
    study = read_study("study.yaml")
    assert study.baseline == "averaged perceptron"
    parts = {**yaml.safe_load(further), **yaml.safe_load(foreign), "seeds": [1]}
    parts["evaluate"] = dict.fromkeys(parts["evaluate"], "study.yaml")  # any file that exists
    theirs = parts["rows"]["theirs"]
    theirs["predictions"] = dict.fromkeys(theirs["predictions"], "study.yaml")
    theirs["costs"] = "study.yaml"
    (here / "parts.yaml").write_text(yaml.safe_dump(parts, sort_keys=False), encoding="utf-8")
    assert [bool(row.predictions) for row in read_study("parts.yaml").rows] == [False, True]
    for file in yaml.safe_load(several)["studies"].values():
        assert read_study(file).rows
    (here / "study.yaml").write_text(curves, encoding="utf-8")
    assert {row.learner for row in read_study("study.yaml").rows} == {"averaged perceptron", "CRF"}


def test_configurations_of_the_page():
    """They are files of the repository; its tables have every option."""
    shown = blocks("reference/configuration", "yaml")
    for text, file in zip(shown, ("quickstart", "best/entities_words", "studies/conll2003_hub"), strict=True):
        assert text == (ROOT / "configs" / f"{file}.yaml").read_text(encoding="utf-8")
    _, model, data, _ = re.split(r"^##+ (?:`model`|`data`|Options on).*$", PAGES["reference/configuration"], flags=re.M)
    for table, part in ((model, Tagger), (data, SequenceDataModule)):
        assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(signature(part).parameters)


@each_page
def test_dotted_names_exist(page):
    for name in re.findall(r"\bstructperc(?:\.\w+)+", PAGES[page]):
        if not name.endswith((".toml", ".md")):
            assert resolved(name) is not None


@each_page
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", PAGES[page]):
        file, _, heading = link.partition("#")
        target = FILES[page].parent / file if file else FILES[page]
        assert target.exists(), link
        if heading:
            assert heading in anchors(target.read_text(encoding="utf-8")), link


@each_page
def test_named_files_exist(page):
    """Such as configs/quickstart.yaml; capitals and dots stand for any name."""
    for path in re.findall(
        r"(?<![\w/.])(?:configs|structperc|benchmarks|notebooks|docs|tests)/[\w./*-]*\w", PAGES[page]
    ):
        if not re.search(r"[A-Z]", path.removesuffix("README.md").removesuffix("RESULTS.md")):
            assert list(ROOT.glob(path)), path
    for name in re.findall(r"(?:\| |configs/|pkg:)((?:best|overlays|studies)/\w+(?:\.yaml)?#\w+)", PAGES[page]):
        assert read_configuration(PREFIX + name.replace(".yaml", "")), name


def test_table_of_the_packages():
    listed = re.findall(r"^\| `(\w+)` \|", PAGES["concepts/design"], re.MULTILINE)
    assert listed == re.findall(r"^(\w+)  ", str(structperc.__doc__), re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "structperc").glob("*/__init__.py")}
    assert folders <= set(listed)


@pytest.mark.parametrize("room", sorted((ROOT / "structperc").glob("*/__init__.py")), ids=lambda path: path.parent.name)
def test_files_of_packages(room):
    tree = ast.parse(room.read_text(encoding="utf-8"))
    for name in re.findall(r"(?<![\w*])\w+\.py", ast.get_docstring(tree) or ""):
        assert (room.parent / name).exists(), name
