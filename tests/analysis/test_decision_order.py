"""The order of decisions: the example of the paper as text and page, the commands, and what they refuse."""

import re
from functools import partial

import pytest
import torch

from structperc.analysis.decision_order import (
    DECISION_NOTES,
    SentenceDecisions,
    Step,
    decision_html,
    decision_lines,
    decisions,
    step_rows,
)
from structperc.chain import KBest
from structperc.criteria import PerceptronLoss
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.synthetic import synthetic_corpus
from structperc.datamodules import Synthetic
from structperc.features import FeatureExtractor
from structperc.guided import ContextFeatures
from structperc.guided.training_arrays import OFFSETS, UNKNOWN
from structperc.scorers import SparseLinear
from structperc.taggers.guided_tagger import GuidedTagger
from structperc.taggers.tagger import Tagger
from structperc.training.program import run as run_program
from tests.pages import Page
from tests.tiny import without_names


def by_hand(words, labels, weights, context, beam=2):
    """A guided tagger with weights {(word, label)} and, of {(offset, neighbour, label)}, those of t[offset]."""
    features = FeatureExtractor(["w[0]"], cutoff=1)
    features.fit(Corpus.from_sentences([{"word": words}]))
    templates = [f"t[{offset}]" for offset in sorted({offset for offset, _, _ in context})]
    tagger = GuidedTagger(features, ContextFeatures(templates, 8), beam)
    tagger.allocate(LabelSet(tuple(labels), "none"))
    names, guided = tagger.features.index.names("node"), tagger.guided
    with torch.no_grad():
        for (word, label), weight in weights.items():
            guided.static.node[names.index(f"w[0]={word}"), tagger.labels.index(label)] = weight
        for (offset, neighbour, label), weight in context.items():
            window = [tagger.labels.index(neighbour) if at == offset else UNKNOWN for at in OFFSETS]
            rows = guided.context.rows(torch.tensor([window]), torch.zeros(1, 0, dtype=torch.int64))
            row = rows[0, templates.index(f"t[{offset}]")]
            guided.context.table[row, tagger.labels.index(label)] = weight
    return tagger.eval()


AGATHA = ["Agatha", "found", "that", "book", "interesting"]
TAGS = ["NNP", "VBD", "VBN", "DT", "IN", "NN", "VB", "JJ"]


@pytest.fixture
def tagger():
    """Of the example in §2.1 of the paper."""
    weights = {("book", "NN"): 90, ("book", "VB"): 80, ("found", "VBD"): 60, ("found", "VBN"): 50}
    weights |= {("interesting", "JJ"): 65, ("that", "IN"): 20}
    context = {(1, "NN", "DT"): 45, (1, "VBD", "NNP"): 30, (-1, "NN", "JJ"): 5, (-1, "VB", "JJ"): 5}
    return by_hand(AGATHA, TAGS, weights, context)


def corpus_of(*sentences, name="text", **columns):
    """Of sentences of words, and for each of them a value per word of the further columns."""
    rows = [{"word": words, **{k: v[i] for k, v in columns.items()}} for i, words in enumerate(sentences)]
    return Corpus.from_sentences(rows, name=name)


# -- the example of the paper ---------------------------------------------------------------------------------


def test_steps_of_the_example(tagger):
    (found,) = decisions(tagger, corpus_of(AGATHA))
    assert found.steps == [
        Step(1, 3, "NN", "NN", 90, [], []),
        Step(2, 4, "JJ", "JJ", 70, ["NN"], []),
        Step(3, 1, "VBD", "VBD", 60, [], []),
        Step(4, 2, "DT", "DT", 45, ["VBD"], ["NN", "JJ"]),
        Step(5, 0, "NNP", "NNP", 30, [], ["VBD", "DT"]),
    ]
    assert found == SentenceDecisions(0, "text, sentence 1, token 1", AGATHA, None, found.steps)
    assert found.score == 295
    assert [step.number for step in found.in_text] == [5, 3, 4, 1, 2]


def test_text_of_the_example(tagger):
    corpus = corpus_of(AGATHA, label=[["NNP", "VBD", "WDT", "NN", "JJ"]])
    assert list(decision_lines(decisions(tagger, corpus)[0])) == [
        "sentence 1 (text, sentence 1, token 1): 5 tokens, score 295, 4 of 5 labels correct",
        "  Agatha(5) found(3) that(4) book(1) interesting(2)",
        "  step  left  token        right   label   U  gold         so far",
        "     1        book                 NN     90  correct      ...#.",
        "     2    NN  interesting          JJ     70  correct      ...=#",
        "     3        found                VBD    60  correct      .#.==",
        "     4   VBD  that         NN JJ   DT     45  wrong (WDT)  .=#==",
        "     5        Agatha       VBD DT  NNP    30  correct      #====",
    ]


def test_changed_label_without_gold():
    """The first word is X by 9 and Y by 8, the second X by 1, by 3 more after Y."""
    weights, context = {("a", "X"): 9, ("a", "Y"): 8, ("b", "X"): 1}, {(-1, "Y", "X"): 3}
    for beam, lines in {
        1: ["  step  left  token  right  label  U  so far", "     1        a             X      9  #."],
        2: [
            "  step  left  token  right  label  U  at first  so far",
            "     1        a             Y      8  X         #.",
            "     2     Y  b             X      4            =#",
        ],
    }.items():
        (found,) = decisions(by_hand(["a", "b"], ["X", "Y"], weights, context, beam), corpus_of(["a", "b"]))
        heading, sentence, *table = decision_lines(found)
        assert heading == f"sentence 1 (text, sentence 1, token 1): 2 tokens, score {10 if beam == 1 else 12}"
        assert sentence == "  a(1) b(2)"
        assert table[: len(lines)] == lines


def test_left_to_right(tagger):
    tagger.guided.order = "left-to-right"
    (found,) = decisions(tagger, corpus_of(AGATHA))
    assert [step.token for step in found.steps] == [0, 1, 2, 3, 4]
    assert [len(step.left) for step in found.steps] == [0, 1, 2, 2, 2]
    assert not any(step.right for step in found.steps)
    assert step_rows(found)[-1][-1] == "====#"


def test_short_sentences(tagger):
    corpus = corpus_of([], ["book"], [], label=[[], ["NN"], []])
    empty, one, last = decisions(tagger, corpus)
    assert empty == SentenceDecisions(0, "text, sentence 1", [], [], [])
    assert (last.row, last.place, last.score) == (2, "text, sentence 3", 0)
    assert one.steps == [Step(1, 0, "NN", "NN", 90, [], [])]
    assert list(decision_lines(empty)) == ["sentence 1 (text, sentence 1): 0 tokens, score 0, 0 of 0 labels correct"]
    assert next(decision_lines(one)).endswith(": 1 token, score 90, 1 of 1 labels correct")
    assert decisions(tagger, corpus_of([])) == [SentenceDecisions(0, "text, sentence 1", [], None, [])]
    assert decisions(tagger, corpus_of()) == []


# -- many sentences -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dev():
    corpus = Corpus.from_dataset(synthetic_corpus(5, 10, inventory=1), "sentence")
    columns = {role: corpus.columns[role] for role in ("word", "pos", "label")}
    return Corpus(columns, corpus.starts, corpus.sentences, corpus.documents, "dev")


@pytest.fixture(scope="module", params=[1, 3])
def drawn(dev, request):
    """A tagger of random weights."""
    features = FeatureExtractor(["w[0]", "pos[0]"], cutoff=1)
    features.fit(dev)
    tagger = GuidedTagger(features, ContextFeatures(["shen2007_c"], 2**10), request.param)
    tagger.allocate(LabelSet.from_corpus(dev.columns["label"], "IOB2"))
    torch.manual_seed(request.param)
    for p in tagger.parameters():
        torch.nn.init.normal_(p)
    return tagger.eval()


def test_decisions_equal_the_labels(drawn, dev):
    found = decisions(drawn, dev)
    assert len(found) == len(dev) > 64  # more than are decoded at once
    assert [[step.label for step in one.in_text] for one in found] == drawn.label(dev)
    words, gold = (dev.sentences_of(dev.columns[name]) for name in ("word", "label"))
    order = dev.sentences_of(drawn.further_columns(dev)["order"])
    assert order == [[str(s.number) for s in one.in_text] for one in found]
    for row, one in enumerate(found):
        assert (one.row, one.words, one.gold) == (row, words[row], gold[row])
        assert [step.number for step in one.steps] == list(range(1, len(one.words) + 1))
    for batch in drawn.batches(dev):
        scores = drawn.guided.decode(batch).scores.tolist()
        assert [found[row].score for row in batch.rows] == pytest.approx(scores)


def test_context_was_decided_before(drawn, dev):
    for one in decisions(drawn, dev):
        labels, when = ([getattr(step, name) for step in one.in_text] for name in ("label", "number"))
        for step in one.steps:
            t, n = step.token, step.number
            left = next((i for i in range(1, t + 1) if when[t - i] > n), t + 1) - 1  # tokens before, decided already
            right = next((i for i in range(1, len(when) - t) if when[t + i] > n), len(when) - t) - 1
            assert step.left == labels[t - min(left, 2) : t]
            assert step.right == labels[t + 1 : t + 1 + min(right, 2)]


def test_some_sentences_are_decided_as_among_all(drawn, dev):
    found = decisions(drawn, dev)
    assert decisions(drawn, dev, [5, 0, 5, len(dev) - 1]) == [found[5], found[0], found[5], found[-1]]
    assert decisions(drawn, dev, []) == []


# -- the page -------------------------------------------------------------------------------------------------


def test_page_holds_the_decisions(tagger):
    corpus = corpus_of(AGATHA, [], ["book"], label=[["NNP", "VBD", "WDT", "NN", "JJ"], [], ["NN"]])
    found = decisions(tagger, corpus)
    page = Page(decision_html(found, "title"))
    assert [page.seen.count(tag) for tag in ("section", "ol", "table", "li")] == [3, 3, 2, 7]  # one in the legend
    assert all(note in page.text for note in DECISION_NOTES)
    for one in found:
        assert all(cell in page.text for row in step_rows(one) for cell in row if cell and one.steps)
    shades = [value for name, value in page.attributes if name == "class" and re.fullmatch(r"s\d", value)]
    assert shades == ["s0", "s4", "s2", "s3", "s0", "s1", "s0"]  # the legend; by step: 5 3 4 1 2; a sentence of one
    assert page.attributes.count(("class", "wrong")) == 2  # the token and its row of the table
    assert "DT, wrong (WDT)" in page.text


def test_labels_have_the_colours_of_the_types(tagger):
    step = Step(1, 0, "B-PER", "B-PER", 1.0, [], [])
    lines = "".join(decision_html([SentenceDecisions(0, "", ["a"], None, [step])], "title", types=["LOC", "PER"]))
    assert lines.count('<mark class="t1">') == 2  # in the legend, and below the word
    assert lines.count('<mark class="t0">') == 1


def test_page_escapes_all_text():
    bad = "<b>&\"'</b>"
    step = Step(1, 0, bad, bad + bad, 1.0, [bad], [bad])
    page = Page(decision_html([SentenceDecisions(0, bad, [bad], ["<b>"], [step])], bad, [bad]))
    assert "b" not in page.seen
    # title twice, note, headline, token and label, left, token, right, label and twice the first one
    assert "".join(page.text).count(bad) == 12
    assert "".join(page.text).count("wrong (<b>)") == 2


# -- the commands ---------------------------------------------------------------------------------------------


@pytest.fixture
def model(tagger, tmp_path):
    tagger.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def chain(tmp_path):
    """A model without an order."""
    features = FeatureExtractor(["w[0]"], cutoff=1)
    features.fit(corpus_of(AGATHA))
    made = Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1))
    made.allocate(LabelSet(tuple(TAGS), "none"))
    made.save(tmp_path / "chain")
    return tmp_path / "chain"


@pytest.fixture
def file(tmp_path):
    """Writes sentences of words and gold labels; -> its path."""
    path = tmp_path / "text.txt"
    lines = [f"{word} {label}\n" for word, label in zip(AGATHA, ["NNP", "VBD", "WDT", "NN", "JJ"], strict=True)]
    path.write_text("".join(lines) + "\nbook NN\n\nthat DT\nbook NN\n", encoding="utf-8")
    return path


def test_decisions_of_a_file(run, model, file, tmp_path):
    text = run("explain", model, file, "--html", tmp_path / "page.html")
    assert Page([(tmp_path / "page.html").read_text(encoding="utf-8")]).seen.count("section") == 3
    assert re.findall(r"^sentence (\d) \((.*)\): \d tokens?, score (\d+), (\d) of", text, re.MULTILINE) == [
        ("1", f"{file}:1", "295", "4"),
        ("2", f"{file}:7", "90", "1"),
        ("3", f"{file}:9", "135", "2"),
    ]
    assert text.splitlines()[-len(DECISION_NOTES) :] == list(DECISION_NOTES)
    assert "wrong (WDT)" in text
    assert "correct" not in "".join(run("explain", model, file, "--columns", "word").splitlines()[:2])
    assert re.findall(r"^sentence (\d)", run("explain", model, file, "--sentences", 1, 2), re.MULTILINE) == ["1", "2"]
    chosen = run("explain", model, file, "--sentences", 3, 1)
    assert re.findall(r"^sentence (\d)", chosen, re.MULTILINE) == ["3", "1"]
    assert set(chosen.splitlines()) < set(text.splitlines())


def test_tag_writes_the_order_before_the_label(run, model, file, tmp_path):
    tagged = without_names(run("tag", model, file, "--order"))
    fields = [line.split() for line in tagged.splitlines()]
    assert [(line[0], line[2], line[3]) for line in fields[:2]] == [("Agatha", "5", "NNP"), ("found", "3", "VBD")]
    assert tagged.splitlines()[2] == "that WDT 4 DT"
    plain = [line.split() for line in without_names(run("tag", model, file)).splitlines()]
    assert [line[:2] + line[3:] for line in fields] == plain
    run("tag", model, file, "--order", "--columns", "word", "gold", "-o", tmp_path / "out.txt")
    assert without_names((tmp_path / "out.txt").read_text()) == tagged
    compared = run("evaluate", tmp_path / "out.txt", tmp_path / "out.txt", "--gold", file, "--scheme", "none")
    assert "87.50" in compared  # 7 of 8


def test_models_without_an_order(fails, chain, file, tmp_path):
    assert "--sentences" in fails("explain", chain, file, "--sentences", 1)
    assert f"{chain}: " in fails("tag", chain, file, "--order", "-o", tmp_path / "out.txt")
    assert not (tmp_path / "out.txt").exists()


def test_bad_input(fails, model, file, tmp_path):
    shown = partial(fails, "explain")
    for number in (0, 4):
        assert f"sentence {number} is not among the 3 of {file}" in shown(model, file, "--sentences", 1, number)
    assert "labels sentences" in shown(model, file, "--unit", "document")
    (tmp_path / "empty.txt").write_text("\n\n")
    assert "empty.txt: " in shown(model, tmp_path / "empty.txt")
    assert " -k" in fails("tag", model, file, "--order", "-k", 2)
    assert "'order'" in fails("tag", model, file, "--order", "--columns", "word", "order")


def test_predict_writes_the_order_before_gold(run, tmp_path):
    config = "pkg:studies/embedded#guided"
    small = ["--data.train=4", "--data.dev=3", "--data.test=0", f"--trainer.default_root_dir={tmp_path}"]
    options = ["-c", str(config), *small, "--trainer.max_epochs=1", "--trainer.enable_progress_bar=false"]
    run_program(["fit", *options])
    kept = tmp_path / "1" / "predictions" / "dev.conll"
    fitted = kept.read_text()
    run("predict", *options, "--ckpt_path=best", "--data.predict=dev")
    rows, known = ([line.split() for line in without_names(text).splitlines()] for text in (kept.read_text(), fitted))
    assert [row[:-3] + row[-2:] for row in rows] == known
    saved, dev = GuidedTagger.load(tmp_path / "1" / "model"), Synthetic(train=4, dev=3, test=0).corpus("dev")
    order = [step.number for one in decisions(saved, dev) for step in one.in_text]
    assert [int(row[-3]) for row in rows if row and row[0] != "-DOCSTART-"] == order
