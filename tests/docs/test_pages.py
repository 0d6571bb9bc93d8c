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

RUN = (
    "concepts/lattice_and_search",
    "concepts/online_learning",
    "concepts/overview",
    "concepts/segments",
    "how_to/active_learning",
    "how_to/annotation_tools",
    "how_to/evaluate",
    "how_to/feature_templates",
    "how_to/find_errors",
    "how_to/hashed_features",
    "how_to/incomplete_labels",
    "how_to/lightning",
    "how_to/own_data",
    "how_to/precision_and_recall",
    "how_to/rerank",
    "how_to/scikit_learn",
    "how_to/segments",
    "index",
    "reference/file_formats",
    "reference/loading",
)
OVERLAYS = (
    "get_started/tag",
    "get_started/train",
    "how_to/add_a_part",
    "how_to/choose_a_learner",
    "how_to/costs",
    "how_to/feature_templates",
    "how_to/guided_tagging",
    "how_to/hashed_features",
    "how_to/incomplete_labels",
    "how_to/long_documents",
    "how_to/migrate",
    "how_to/neural_encoders",
    "how_to/nonlocal_features",
    "how_to/own_data",
    "how_to/precision_and_recall",
    "how_to/segments",
    "results/recommended",
)
TESTED_IN = {  # pages whose code and configurations need a model or files: the test that makes these
    "README": "docs/test_commands.py",
    "get_started/head": "docs/test_head.py",
    "get_started/tag": "docs/test_commands.py",
    "get_started/train": "docs/test_get_started.py",
    "how_to/add_a_part": "docs/test_own_parts.py",
    "how_to/confidence": "docs/test_commands.py",
    "how_to/decode_tokens": "nn/test_token_decoding.py",
    "how_to/dictionaries": "docs/test_commands.py",
    "how_to/export": "chain/test_exportable.py",
    "how_to/lora": "docs/test_head.py",
    "how_to/migrate": "docs/test_migration.py",
    "how_to/more_recall": "docs/test_commands.py",
    "how_to/neural_encoders": "docs/test_head.py",
    "how_to/nonlocal_features": "nonlocal_features/test_own_feature.py",
    "how_to/serve": "docs/test_serving.py",
    "how_to/share_models": "docs/test_commands.py",
    "how_to/studies": "docs/test_pages.py",
    "reference/configuration": "docs/test_pages.py",
}
NOT_RUN = {
    "how_to/processes_and_gpus": "needs Ray",
    "how_to/rerank": "its configuration is an outline with {...}; configs/studies/embedded.yaml#boosting is the whole",
}
BASES = {"how_to/guided_tagging": "pkg:overlays/data#embedded"}  # others: the quickstart
BEFORE = {  # of a page and block, the blocks that it says it comes after
    ("how_to/choose_a_learner", number): before
    for number, before in {2: (1,), 3: (1,), 5: (4,), 6: (4,), 7: (1, 4), 8: (1,)}.items()
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


@each_page
def test_blocks_are_tested(page):
    """Code of each page runs, and its configurations are built, here or in the test that is named for the page."""
    if page in NOT_RUN:
        for code in blocks(page, "python"):
            compile(code, page, "exec")
        for text in blocks(page, "yaml"):
            assert yaml.safe_load(text)
    elif page in TESTED_IN:
        assert page.split("/")[-1] in (ROOT / "tests" / TESTED_IN[page]).read_text(encoding="utf-8")
    else:
        assert page in RUN or not blocks(page, "python")
        assert page in OVERLAYS or not blocks(page, "yaml")


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
