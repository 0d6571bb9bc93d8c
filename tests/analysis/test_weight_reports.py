"""structperc weights: every weight that is shown against a list of all weights by name."""

import csv
import re

import pytest
import torch

from structperc.analysis.weight_ranking import (
    Group,
    LabelWeights,
    Sums,
    Transitions,
    Weight,
    WeightGroups,
    title,
    weight_lines,
    weights,
)
from structperc.chain import KBest
from structperc.cli.main import main
from structperc.criteria import MarginLoss
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.lexicon import LowerCaseLexicon
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import (
    ConjunctionConsistency,
    LexiconShapes,
    MajorityPhrase,
    PhraseConsistency,
    QuotedTags,
    WholeEntity,
)
from structperc.reports.figures import plot_weights
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from tests.pages import Page

SENTENCES = [["Anna", "paid", "$", "$5", "in", "New", "York"], ["Rome", "waits"], ["Anna"], ["$", "$"]]
TEMPLATES = ["bias", {"of": ["w", "p2"], "at": [-1, 0, [-1, 0]]}]
EDGES = {"none": None, "the same": TEMPLATES, "others": ["bias", "w[0]"]}


def made(edge=None, transitions=True, more=(), spread=9):
    """A tagger of random integer weights, half of them 0."""
    features = FeatureExtractor(TEMPLATES, edge, cutoff=1)
    features.fit(Corpus.from_sentences([{"word": words} for words in SENTENCES]))
    tagger = Tagger(features, SparseLinear(transitions), MarginLoss(1.0), KBest(2), nonlocal_features=more)
    tagger.allocate(LabelSet.from_corpus(["O", "B-PER", "B-LOC"], "IOB2"))
    torch.manual_seed(len(list(tagger.parameters())))
    with torch.no_grad():
        for parameter in tagger.parameters():
            parameter.copy_(torch.randint(-spread, spread + 1, parameter.shape) * torch.randint(0, 2, parameter.shape))
    return tagger


def by_name(tagger):
    """{group: {(feature, labels): weight}}, each weight looked up by itself."""
    names, scorer = tagger.labels.names, tagger.scorer
    found = {"node": {}}
    for i, feature in enumerate(tagger.features.index.names("node")):
        found["node"] |= {(feature, name): float(scorer.node[i, j]) for j, name in enumerate(names)}
    pairs = [(a, b) for a in range(len(names)) for b in range(len(names))]
    if scorer.edge is not None:
        found["edge"] = {}
        for i, feature in enumerate(tagger.features.index.names("edge")):
            row = scorer.edge[i].view(len(names), -1)
            found["edge"] |= {(feature, f"{names[a]} {names[b]}"): float(row[a, b]) for a, b in pairs}
    if scorer.transition is not None:
        found["transition"] = {("", f"{names[a]} {names[b]}"): float(scorer.transition[a, b]) for a, b in pairs}
    for feature in tagger.nonlocal_features:
        columns = feature.names(tagger.labels.type_names)
        found[title(feature)] = {(name, ""): float(w) for name, w in zip(columns, feature.weight, strict=True)}
    return found


@pytest.fixture(
    params=[("none", True), ("the same", False), ("others", True)], ids=["no edges", "same edges", "other edges"]
)
def tagger(request):
    edges, transitions = request.param
    return made(EDGES[edges], transitions, [PhraseConsistency(), MajorityPhrase(match="folded")])


def check_list(listed, wanted, top):
    """Named rightly, none twice, in order, and no larger one is missing; `wanted` maps names to what is sorted by."""
    names = [(weight.feature, weight.labels) for weight in listed]
    assert len(set(names)) == len(names)
    assert [wanted[name] for name in names] == sorted(wanted.values(), reverse=True)[:top]


# -- the lists ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("top", [4, 10_000])
def test_largest_weights(tagger, top):
    known = by_name(tagger)
    groups = weights(tagger, top)
    assert [group.sums.name for group in groups] == list(known)
    for group in groups:
        values = known[group.sums.name]
        assert all(weight.value == values[weight.feature, weight.labels] for weight in group.listed)
        assert all(weight.group == group.sums.name for weight in group.listed)
        sizes = {name: abs(value) for name, value in values.items()}
        if group.sums.name in ("node", "edge", "transition"):
            check_list(group.largest, {name: size for name, size in sizes.items() if size}, top)
        else:
            check_list(group.largest, sizes, None)


def test_highest_and_lowest_of_each_label(tagger):
    known, top = by_name(tagger), 3
    for group in weights(tagger, top):
        values = known[group.sums.name]
        if group.sums.name not in ("node", "edge"):
            assert group.columns == []
            continue
        assert len(group.columns) == len({labels for _, labels in values})
        for sums, highest, lowest in group.columns:
            own = {name: value for name, value in values.items() if name[1] == sums.name}
            assert sums[1:] == (len(own), sum(v != 0 for v in own.values()), sum(map(abs, own.values())))
            check_list(highest, {name: value for name, value in own.items() if value > 0}, top)
            check_list(lowest, {name: -value for name, value in own.items() if value < 0}, top)
            assert all(weight.value < 0 for weight in lowest)


def test_sums_of_groups_and_templates(tagger):
    known = by_name(tagger)
    for group in weights(tagger):
        values = known[group.sums.name]
        assert group.sums[1:] == (len(values), sum(v != 0 for v in values.values()), sum(map(abs, values.values())))
        if group.sums.name not in ("node", "edge"):
            assert group.templates == []
            continue
        wanted = {}
        for (feature, _), value in values.items():
            template = re.sub(r"(?<=\])=[^|]*", "", feature)
            size, nonzero, mass = wanted.get(template, (0, 0, 0.0))
            wanted[template] = (size + 1, nonzero + (value != 0), mass + abs(value))
        assert {sums.name: sums[1:] for sums in group.templates} == wanted
        masses = [sums.mass for sums in group.templates]
        assert masses == sorted(masses, reverse=True)


def test_weights_are_listed_once(tagger):
    for group in weights(tagger, 3):
        sizes = [abs(weight.value) for weight in group.listed]
        assert len(set(group.listed)) == len(group.listed)
        assert sizes == sorted(sizes, reverse=True)
        lists = [group.largest, *(part for column in group.columns for part in column[1:])]
        assert set(group.listed) == {weight for part in lists for weight in part}


def test_a_model_without_any_weight():
    groups = weights(made(TEMPLATES, more=[PhraseConsistency()], spread=0))
    assert [group.sums.nonzero for group in groups] == [0, 0, 0, 0]
    *local, more = groups
    assert all(group.listed == [] for group in local)
    assert [weight.value for weight in more.listed] == [0, 0, 0]
    assert "\n".join(weight_lines(groups))


@pytest.mark.parametrize("top", [0, -3])
def test_bad_top(tagger, top):
    with pytest.raises(InputError, match="--top "):
        weights(tagger, top)


@pytest.mark.parametrize(
    ("feature", "name"),
    [
        (PhraseConsistency(), "PhraseConsistency"),
        (PhraseConsistency(match="folded"), "PhraseConsistency(match='folded')"),
        (ConjunctionConsistency(["and"]), "ConjunctionConsistency(connectors=['and'])"),
        (WholeEntity(typed=False), "WholeEntity(typed=False)"),
        (QuotedTags(4), "QuotedTags(limit=4)"),
        (LexiconShapes(), "LexiconShapes"),
        (LexiconShapes(lexicon=LowerCaseLexicon()), "LexiconShapes"),
        (
            LexiconShapes(False, LowerCaseLexicon("a.txt", 1)),
            "LexiconShapes(typed=False, lexicon=LowerCaseLexicon(text='a.txt', column=1))",
        ),
    ],
)
def test_titles(feature, name):
    assert title(feature) == name


# -- strings ---------------------------------------------------------------------------------------------------


def with_strings(feature, n, named=True):
    """The feature with n strings."""
    numbers = torch.arange(n) * 1000 - 5000
    feature.set_vocabulary(
        numbers, [f"{feature.template}={chr(65 + i % 26)} {i}/PER" for i in range(n)] if named else None
    )
    return feature


def test_largest_weights_of_strings():
    top = 5
    more = [with_strings(WholeEntity(), 60), PhraseConsistency(), with_strings(LexiconShapes(typed=False), 3)]
    tagger = made(more=more)
    known, groups = by_name(tagger), weights(tagger, top)
    names = [group.sums.name for group in groups]
    assert names == ["node", "transition", "PhraseConsistency", "WholeEntity", "LexiconShapes(typed=False)"]
    for group in groups[2:]:
        values = known[group.sums.name]
        sizes = {name: abs(value) for name, value in values.items()}
        assert (group.columns, group.templates) == ([], [])
        assert group.sums[1:] == (len(values), sum(v != 0 for v in values.values()), sum(sizes.values()))
        assert all(weight.value == values[weight.feature, ""] for weight in group.largest)
        if group.sums.name == "PhraseConsistency":
            check_list(group.largest, sizes, None)
        else:
            check_list(group.largest, {name: size for name, size in sizes.items() if size}, top)
    assert len(groups[3].largest) == min(top, groups[3].sums.nonzero) > 0


def test_strings_in_the_text_by_name_or_number(tmp_path, capsys):
    named, numbered = with_strings(WholeEntity(), 7), with_strings(LexiconShapes(), 7, named=False)
    tagger = made(more=[named, numbered])
    lines = "\n".join(weight_lines(weights(tagger, 3), 3))
    for feature, form in ((named, r"WE=[A-G] \d/PER"), (numbered, r"GF#[0-9a-f]{16}")):
        part = lines[lines.index(f"{title(feature)}: largest") :].split("\n\n")[0].splitlines()[1:]
        values = dict(zip(feature.names(()), feature.weight.tolist(), strict=True))
        found = [re.fullmatch(rf" *([+-]\d+)  ({form})", line).groups() for line in part]
        assert [values[name] for _, name in found] == [float(value) for value, _ in found]
        assert len(found) == min(3, int(feature.weight.count_nonzero()))


def test_features_without_any_string():
    groups = weights(made(more=[WholeEntity(), with_strings(LexiconShapes(), 0)]))
    assert [(group.sums.name, group.sums.weights, group.listed) for group in groups[2:]] == [
        ("WholeEntity", 0, []),
        ("LexiconShapes", 0, []),
    ]
    assert "WholeEntity: largest weights" in "\n".join(weight_lines(groups))


# -- the command ----------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "model"
    made(EDGES["others"], True, [PhraseConsistency(), PhraseConsistency(match="folded")]).save(folder)
    return folder


def test_text_names_every_listed_weight(saved, capsys):
    assert main(["explain", str(saved), "--top", "5"]) == 0
    text = capsys.readouterr().out
    tagger = Tagger.load(saved)
    head, *rows = text.split("\n\n")[0].splitlines()
    assert head.split()[:2] == ["group", "weights"]
    known = by_name(tagger)
    assert [row.split()[0] for row in rows] == list(known)
    for row in rows:
        name, size, nonzero = row.split()[:3]
        values = known[name].values()
        assert (int(size), int(nonzero)) == (len(values), sum(value != 0 for value in values))
    assert sum(float(row.split()[-1].rstrip("%")) for row in rows) == pytest.approx(100, abs=0.3)
    shown = {(name, float(value)) for value, name in re.findall(r"^ *([+-]\d+)  (.+)$", text, re.MULTILINE)}
    for group in weights(tagger, 5):
        assert {(weight.name, weight.value) for weight in group.largest} <= shown


def test_page_has_all_weights(saved, tmp_path, capsys):
    assert main(["explain", str(saved), "--top", "3", "--html", str(tmp_path / "page.html")]) == 0
    page = Page([(tmp_path / "page.html").read_text(encoding="utf-8")])
    found = weights(Tagger.load(saved), 3)
    for group in found:
        shown = [w for column in group.columns for w in (*column.highest, *column.lowest)] or group.largest
        if group.sums.name in ("node", "PhraseConsistency"):
            assert all(w.feature in page.text and f"{w.value:+.3f}" in page.text for w in shown if w.value)
    assert not {"script", "link", "img"} & set(page.seen)


def test_tables_of_all_label_pairs(tagger):
    """They are those of the scorer, or of the template that every token has."""
    found = weights(tagger, 1).transitions
    names, known = tagger.labels.names, by_name(tagger)
    group, feature = ("transition", "") if "transition" in known else ("edge", "bias")
    expected = [[known[group][feature, f"{a} {b}"] for b in names] for a in names]
    assert found == Transitions(list(names), expected)
    lines = weights(tagger, 1)._repr_html_()
    assert Page([lines]).seen.count("table") >= 1 + len(names)
    shades = re.findall(r"<td style=.background: rgba\((\d+), .*?>([+-])", lines)
    assert {(red == "30", sign) for red, sign in shades} == {(True, "+"), (False, "-")}


def test_tables_escape_names():
    bad = Weight("node", "<b>&", "B-<i>", 1.0)
    column = LabelWeights(Sums("B-<i>", 1, 1, 1.0), [bad], [])
    group = Group(Sums("node", 1, 1, 1.0), [bad], [column], [])
    other = Group(Sums("<u>", 1, 1, 1.0), [bad], [], [])
    page = Page([WeightGroups([group, other], Transitions(["B-<i>"], [[1.0]]))._repr_html_()])
    assert not {"b", "i", "u"} & set(page.seen)
    assert {"<b>&", "B-<i>"} <= set(page.text)


def test_csv_has_all_weights(saved, tmp_path):
    assert main(["explain", str(saved), "--top", "4", "--csv", str(tmp_path / "w.csv")]) == 0
    with open(tmp_path / "w.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    tagger = Tagger.load(saved)
    found = [(row["group"], row["feature"], row["labels"], float(row["value"])) for row in rows]
    assert found == [tuple(weight) for group in weights(tagger, 4) for weight in group.listed]


def test_plot_is_written(saved, tmp_path):
    assert main(["explain", str(saved), "--plot", str(tmp_path / "w.svg")]) == 0
    assert (tmp_path / "w.svg").read_bytes()[:5] == b"<?xml"


def test_plot_panels_and_bars():
    groups = {"node": [("w[0]=$|w[1]=$ -> O", 3.0), ("a", -2.0)], "edge": [], "phrase": [("phrase(A,B)", 0.0)] * 3}
    figure = plot_weights(list(groups.items()))
    panels = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title() for ax in panels] == ["node", "phrase"]
    assert [bar.get_width() for bar in panels[0].patches] == [3, -2]
    assert len(panels[1].patches) == 3
    assert panels[0].get_yticklabels()[0].get_text() == r"w[0]=\$|w[1]=\$ -> O"


@pytest.mark.parametrize("name", ["w[0]=$\\|w[1]=$_", "w[0]=日本"])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_plot_of_any_name(tmp_path, name):
    plot_weights([("node", [(name, 1.0)])]).savefig(tmp_path / "name.png")
