"""structperc explain: a decision worked by hand, sums that add up, the page, the command."""

import re
from functools import partial

import pytest
import torch

from structperc.analysis.explanation import Change, ChangedSentence, explain, explain_changed, summarise
from structperc.analysis.explanation_report import context, explanation_html, explanation_lines, legend, score_rows
from structperc.chain import KBest, kbest, path_score
from structperc.data.conll import write_conll
from structperc.data.corpus import Corpus
from structperc.data.tag_schemes import Span, spans
from structperc.errors import InputError
from structperc.nonlocal_features import (
    CandidateSegments,
    ConjunctionConsistency,
    LastWord,
    MajorityPhrase,
    PhraseConsistency,
    StartBigrams,
    SubphraseConsistency,
    WholeEntity,
)
from structperc.nonlocal_features.global_feature import Vocabulary, format_strings
from structperc.reports.html_pages import COLOURS, type_colours
from structperc.taggers.tagger import Tagger
from structperc.tagging.writing import text_page
from structperc.text.alignment import TextSpan
from tests.analysis.trained import documents, trained, untrained
from tests.pages import Page

FEATURES = (PhraseConsistency, SubphraseConsistency, MajorityPhrase, ConjunctionConsistency)


# -- by hand --------------------------------------------------------------------------------------------------

STORY = [("Mr. Lind waits", "O B-PER O"), ("Lind waits in Rome & Lind", "B-PER O O B-LOC O B-LOC")]


def story(gold=True):
    parts = [{"word": words.split(), "label": labels.split()} for words, labels in STORY]
    return Corpus.from_sentences(
        [part if gold else {"word": part["word"]} for part in parts], [0] * len(parts), "document", "story"
    )


def by_hand():
    """Names of known weights: Lind is LOC by 1.25 and PER by 1, PER by 4 more after Mr.; Rome is LOC."""
    tagger = untrained(story(), ["w[0]", "w[-1]"], [PhraseConsistency()], KBest(20))
    names = tagger.features.index.names("node")
    weights = {("w[0]=Lind", "B-LOC"): 1.25, ("w[0]=Lind", "B-PER"): 1.0, ("w[-1]=Mr.", "B-PER"): 4.0}
    weights |= {("w[0]=Rome", "B-LOC"): 9.0, **{(f"w[0]={word}", "O"): 9.0 for word in ("Mr.", "waits", "in", "&")}}
    with torch.no_grad():
        for (feature, label), weight in weights.items():
            tagger.scorer.node[names.index(feature), tagger.labels.index(label)] = weight
        tagger.nonlocal_features[0].weight.copy_(torch.tensor([0.0, -2.0, 0.5]))  # (LOC,LOC), (LOC,PER), (PER,PER)
    return tagger


@pytest.fixture
def worked():
    return explain(by_hand(), story(), 0, 20)


def test_hand_worked_numbers(worked):
    # before: PER LOC LOC, 5 + 1.25 + 1.25; after: PER PER PER, 5 + 1 + 1. Rome and five other words: 6 * 9.
    before, after = worked.candidates[0], worked.candidates[worked.after]
    assert (before.local, after.local) == (54 + 7.5, 54 + 7.0)
    assert (before.local_rank, after.rank) == (1, 1)
    counts = {term.name: (term.weight, term.counts[0], term.counts[worked.after]) for term in worked.terms}
    assert counts == {"phrase(LOC,PER)": (-2.0, 2.0, 0.0), "phrase(PER,PER)": (0.5, 0.0, 3.0)}
    assert [term.name for term in worked.terms] == ["phrase(LOC,PER)", "phrase(PER,PER)"]
    assert worked.shared_score == 0
    assert (before.total, after.total) == (61.5 - 4.0, 61.0 + 1.5)
    assert (before.is_gold, after.is_gold) == (False, False)
    assert worked.n_candidates == 20


def test_hand_worked_changes(worked):
    first, second = worked.changes
    words = STORY[1][0].split()
    assert first == Change("story, sentence 2, token 1", words, *([Span(c, 0, 1)] for c in ("LOC", "PER", "PER")))
    assert second == Change("story, sentence 2, token 6", words, *([Span(c, 5, 6)] for c in ("LOC", "PER", "LOC")))
    assert (first.verdict, second.verdict) == ("repaired", "damaged")
    assert context(second) == ("Lind waits in Rome &", "Lind", "")


def test_adjacent_changes():
    parts = [{"word": ["Mr.", "Lind"], "label": ["O", "B-PER"]}, {"word": ["Lind", "Lind"], "label": ["B-PER", "O"]}]
    explanation = explain(by_hand(), Corpus.from_sentences(parts, [0, 0], "document"), 0, 100)
    wanted = [([Span("LOC", t, t + 1)], [Span("PER", t, t + 1)]) for t in (0, 1)]
    assert [(change.before, change.after) for change in explanation.changes] == wanted
    assert [change.verdict for change in explanation.changes] == ["repaired", "changed"]


def test_text_of_the_story(worked):
    text = "\n".join(explanation_lines(worked))
    assert "document 1 (story, sentence 1, token 1)" in text
    assert "[Lind] waits in Rome & Lind" in text
    assert "Lind waits in Rome & [Lind]" in text
    assert re.search(r"before +LOC Lind\n +after +PER Lind\n +gold +PER Lind\n +repaired", text)
    assert re.search(r"before +LOC Lind\n +after +PER Lind\n +gold +LOC Lind\n +damaged", text)
    assert re.search(r"local score +61.5 .* -0.5\n", text)
    assert re.search(r"phrase\(LOC,PER\) -2 +-4 \(2\) .* \+4\n", text)
    assert re.search(r"phrase\(PER,PER\) \+0.5 +0 \(0\) .* \+1.5\n", text)
    assert re.search(r"total score +57.5 .* \+5\n", text)


def test_text_without_gold():
    (explanation,) = explain_changed(by_hand(), story(gold=False), 20)
    text = "\n".join(explanation_lines(explanation))
    assert "gold" not in text
    assert "repaired" not in text
    assert all(change.gold is None for change in explanation.changes)
    summary = summarise([explanation], story(gold=False))
    assert summary.verdicts is None
    assert summary.line() == "1 of 1 documents changed, in 2 places"


def test_summary_of_the_story(worked):
    line = summarise([worked], story()).line()
    assert line == "1 of 1 documents changed, in 2 places: 1 repaired, 1 damaged, 0 wrong before and after"


def test_a_list_of_one_changes_nothing():
    assert list(explain_changed(by_hand(), story(), 1)) == []
    explanation = explain(by_hand(), story(), 0, 1)
    assert explanation.changes == []
    assert (explanation.after, len(explanation.candidates)) == (0, 1)
    assert "stays the best" in next(explanation_lines(explanation))


# -- strings --------------------------------------------------------------------------------------------------


def learn(tagger, corpus, n):
    """Strings of the n best become the features of a tagger."""
    batch = tagger.encode(corpus)[list(range(len(corpus)))]
    with torch.no_grad():
        found = kbest(tagger(batch), n)
    segments = CandidateSegments(batch, found.labels, found.valid, tagger.labels)
    for feature in tagger.nonlocal_features:
        vocabulary = Vocabulary()
        vocabulary.add(feature.occurrences(segments), batch.rows, n)
        keys = vocabulary.keys()

        def labels(row, k):
            return tagger.labels.decode(found.labels[row, k, : batch.lengths[row]])

        feature.set_vocabulary(
            keys, format_strings(feature, vocabulary.examples(keys), corpus, labels, tagger.labels.type_names)
        )
        feature.weight.requires_grad_(False)


def test_a_string_counts_once():
    """Lind is LOC twice before, and that counts -3 once; PER in both."""
    tagger = by_hand()
    tagger.nonlocal_features[0] = WholeEntity()
    learn(tagger, story(), 20)
    (feature,) = tagger.nonlocal_features
    for name, weight in (("WE=Lind/LOC", -3.0), ("WE=Lind/PER", 0.5)):
        feature.weight[feature.strings.index(name)] = weight
    worked = explain(tagger, story(), 0, 20)
    before, after = worked.candidates[0], worked.candidates[worked.after]
    assert (before.local, after.local) == (54 + 7.5, 54 + 7.0)
    assert (before.total, after.total) == (61.5 + 0.5 - 3, 61.0 + 0.5)
    assert worked.shared_score == 0.5
    (term,) = worked.terms
    assert (term.name, term.weight) == ("WE=Lind/LOC", -3.0)
    assert (term.counts[0], term.counts[worked.after]) == (1.0, 0.0)
    assert re.search(r"WE=Lind/LOC -3 +-3 \(1\) .* \+3\n", "\n".join(explanation_lines(worked)))


def test_strings_add_up_to_the_totals():
    corpus = documents(1, 6)
    tagger = untrained(corpus, ["bias", "w[0]"], [WholeEntity(), StartBigrams(), LastWord(typed=False)], KBest(30))
    torch.manual_seed(0)
    torch.nn.init.normal_(tagger.scorer.node)
    learn(tagger, corpus, 30)
    for feature in tagger.nonlocal_features:
        torch.nn.init.normal_(feature.weight, std=2)
    changed = list(explain_changed(tagger, corpus, 30, progress=False))
    assert changed
    for one in changed:
        batch = tagger.encode(corpus)[[one.row]]
        with torch.no_grad():
            found = kbest(tagger(batch), 30)
            total_scores = tagger.total_scores(batch, found)[0].tolist()
        for i, candidate in enumerate(one.candidates):
            assert candidate.total == pytest.approx(total_scores[candidate.local_rank - 1], abs=1e-3)
            assert candidate.total == sum(
                (t.weight * t.counts[i] for t in one.terms), candidate.local + one.shared_score
            )
        assert all(set(term.counts) == {0, 1} for term in one.terms)
        assert all(term.name.split("=")[0] in ("WE", "LW", "BO00", "BO01", "BO10", "BO11") for term in one.terms)


def test_only_linear_decisions():
    class Voting(Tagger):
        additive = False

    tagger = by_hand()
    tagger.__class__ = Voting
    for attempt in (lambda: explain(tagger, story(), 0), lambda: next(explain_changed(tagger, story()))):
        with pytest.raises(InputError, match=r"ranker\.predict: average"):
            attempt()


# -- trained --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tagger():
    """With non-local weights like the trained ones: same is good."""
    made = trained([one() for one in FEATURES], KBest(40))
    with torch.no_grad():
        for feature in made.nonlocal_features:
            names = feature.names(made.labels.type_names)
            same = torch.tensor([len(set(re.split(r"[(,)]", name)[1:3])) == 1 for name in names])
            feature.weight.copy_(torch.where(same, 2.0, -2.0) + 0.5 * torch.randn(len(names)))
    return made


@pytest.fixture(scope="module")
def dev():
    return documents(1, 12)


@pytest.fixture(scope="module")
def changed(tagger, dev):
    return list(explain_changed(tagger, dev, 40))


def decisions(tagger, corpus, n):
    """Labels of each sequence, decided among n candidates."""
    tagger.decoder = KBest(n)
    flat = [label for sentence in tagger.label(corpus) for label in sentence]
    return [flat[a:b] for a, b in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)]


def test_changed_documents(tagger, dev, changed):
    before, after = decisions(tagger, dev, 1), decisions(tagger, dev, 40)
    assert [one.row for one in changed] == [row for row in range(len(dev)) if before[row] != after[row]]
    assert 0 < len(changed) < len(dev)
    for one in changed:
        assert one.candidates[0].labels == before[one.row]
        assert one.candidates[one.after].labels == after[one.row]
        assert one.candidates[one.after].local_rank > 1


def test_one_document_is_explained_as_among_all(tagger, dev, changed):
    for one in changed:
        assert explain(tagger, dev, one.row, 40) == one


def test_numbers_add_up_exactly(tagger):
    corpus = documents(1, 6)
    for row in range(len(corpus)):
        one = explain(tagger, corpus, row, 40)
        for i, candidate in enumerate(one.candidates):
            assert candidate.total == sum(
                (term.weight * term.counts[i] for term in one.terms), candidate.local + one.shared_score
            )
            assert all(count == int(count) >= 0 for term in one.terms for count in term.counts)
        assert all(len(set(term.counts)) > 1 and term.weight for term in one.terms)
        assert len({term.name for term in one.terms}) == len(one.terms)


def test_scores_equal_those_of_the_tagger(tagger, dev, changed):
    rows = tagger.encode(dev)
    for one in changed:
        batch = rows[[one.row]]
        with torch.no_grad():
            lattice = tagger(batch)
            found = tagger.rescore(batch, kbest(lattice, 40))
            ranked = [tagger.labels.decode(path) for path in found.labels[0]]
            alone = [tagger.labels.decode(path) for path in kbest(lattice, 40).labels[0]]
            for candidate in one.candidates:
                path = torch.from_numpy(tagger.labels.encode(candidate.labels))[None]
                more = tagger.candidate_scorer.nonlocal_scores(batch, path[None], torch.ones(1, 1, dtype=torch.bool))
                assert candidate.local == float(path_score(lattice, path))
                assert candidate.total == pytest.approx(candidate.local + float(more), abs=1e-4)
                assert ranked.index(candidate.labels) + 1 == candidate.rank
                assert alone.index(candidate.labels) + 1 == candidate.local_rank


@pytest.mark.parametrize("row", range(3))
def test_candidates_between(tagger, dev, row):
    batch = tagger.encode(dev)[[row]]
    with torch.no_grad():
        found = kbest(tagger(batch), 40)
        total_scores = (found.scores + tagger.candidate_scorer.nonlocal_scores(batch, found.labels, found.valid))[
            0
        ].tolist()
    ranked = sorted(range(40), key=lambda k: -total_scores[k])
    best = ranked[0]
    between = [k for k in ranked[1:] if 0 < k < best or best == 0][:3]
    shown = explain(tagger, dev, row, 40).candidates
    gold = {one.local_rank - 1 for one in shown if one.is_gold}
    assert {one.local_rank - 1 for one in shown} == {0, best, *between} | gold


def test_changes_cover_all_differences(tagger, dev, changed):
    for one in changed:
        before, after = one.candidates[0].labels, one.candidates[one.after].labels
        start, end = dev.starts[one.row], dev.starts[one.row + 1]
        covered = set()
        for change in one.changes:
            number, token = map(int, re.fullmatch(r"dev, sentence (\d+), token (\d+)", change.place).groups())
            base = int(dev.sentences[number - 1])
            assert change.words == dev.columns["word"][base : dev.sentences[number]]
            assert change.extent[0] == token - 1
            for known, labels in ((change.before, before), (change.after, after), (change.gold, None)):
                flat = dev.columns["label"][start:end] if labels is None else labels
                all_spans = spans(flat[base - start : dev.sentences[number] - start])
                first, stop = change.extent
                assert known == [span for span in all_spans if span.start < stop and span.end > first]
            covered |= set(range(base - start + change.extent[0], base - start + change.extent[1]))
        assert {t for t in range(end - start) if before[t] != after[t]} <= covered
        for change in one.changes:
            assert change.before != change.after


def test_rows_without_a_difference_are_added_up(changed):
    """Of the decision before and the one after; a candidate between them may have another sum. One row stays."""
    found = set()
    for one in changed:
        alike = [term for term in one.terms if abs(term.products[one.after] - term.products[0]) < 5e-4]
        rows = {row[0]: row[1:] for row in score_rows(one)}
        for term in one.terms:
            left_out = term in alike and len(alike) > 1
            assert any(name.startswith(f"{term.name} ") for name in rows) != left_out
        if len(alike) > 1:
            sums = [sum(term.products[i] for term in alike) for i in range(len(one.candidates))]
            cells = map(float, rows[f"{len(alike)} rows, no difference"])
            assert list(cells) == pytest.approx([*sums, 0], abs=1e-3)
        found.add(min(len(alike), 2))
    assert 2 in found
    stays = explain(by_hand(), story(), 0, 1)
    assert not any("no difference" in row[0] for row in score_rows(stays))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_same_on_cuda():
    assert explain(by_hand().cuda(), story(), 0, 20) == explain(by_hand(), story(), 0, 20)


# -- the page -------------------------------------------------------------------------------------------------


def test_page_holds_the_explanations(changed):
    page = Page(explanation_html(changed, "title", ["a summary"]))
    text = "".join(page.text)
    assert page.seen.count("section") == page.seen.count("table") == len(changed)
    assert page.seen.count("strong") == sum(len(one.changes) for one in changed)
    assert "a summary" in text
    assert all(line in page.text for line in legend(changed))
    for one in changed:
        for row in score_rows(one):
            assert all(cell in page.text for cell in row if cell)


def test_page_escapes_all_text(worked):
    bad = "<b>&\"'</b>"
    change = Change(bad, [bad, bad, bad], [Span(bad, 1, 2)], [], [Span(bad, 1, 2)])
    term = worked.terms[0]._replace(name=bad)
    sentence = ChangedSentence(change.words, [Span(bad, 0, 1)], [change])
    page = Page(explanation_html([worked._replace(place=bad, sentences=[sentence], terms=[term])], bad, [bad]))
    assert "b" not in page.seen
    assert "".join(page.text).count(bad) == 19


def test_page_has_an_index_of_several_documents(changed):
    page = Page(explanation_html(changed, "title"))
    targets = [value for name, value in page.attributes if name == "id"]
    links = [value for name, value in page.attributes if name == "href"]
    assert len(set(targets)) == len(targets)
    wanted = [f"#document-{one.row + 1}" for one in changed]
    assert [link for link in links if link != "#index"] == wanted
    assert {link.removeprefix("#") for link in links} == set(targets)
    assert "href" not in {name for name, _ in Page(explanation_html(changed[:1], "title")).attributes}


def document_lines(explanations):
    """The text of the sentences of each document on a page, with the types of their segments."""
    page = "".join(explanation_html(explanations, "title"))
    documents = re.findall(r'<div class="document">(.*?)</div>', page, re.DOTALL)
    return [["".join(Page([p]).text) for p in re.findall(r"<p>(.*?)</p>", part, re.DOTALL)] for part in documents]


def test_page_of_a_document(worked):
    """Lind is LOC before and PER after in the second and the last place; what stays is marked with its type."""
    (lines,) = document_lines([worked])
    assert len(lines) == len(STORY)
    text = " ".join(lines)
    assert "LindLOC PER waits in RomeLOC & LindLOC PER" in text
    words = [word for sentence, _ in STORY for word in sentence.split()]
    assert [word for word in re.sub("(LOC|PER)( PER)?", "", text).split() if word] == words


def test_a_change_of_boundaries_names_the_words(worked):
    words = ["Ann", "Lee", "of", "Rome"]
    one, whole = Span("PER", 0, 1), Span("PER", 0, 2)
    changes = [Change("", words, [one], [whole], None), Change("", words, [Span("LOC", 3, 4)], [], None)]
    sentence = ChangedSentence(words, [whole], changes)
    explanation = worked._replace(sentences=[sentence, ChangedSentence([], [], [])])
    assert document_lines([explanation]) == [["Ann LeePER Ann PER of RomeLOC none"]]


def test_colours_of_types(worked):
    """PER has one colour, whatever else is on a page; further types come after those of the model."""
    types = ["LOC", "MISC", "ORG", "PER"]
    for lines in (
        explanation_html([worked], "title", types=types),
        text_page([("Anna", [TextSpan(0, 4, "PER")])], "title", types),
    ):
        assert re.findall(r'<mark class="t(\d+)">PER', "".join(lines))[:1] == ["3"]
    assert type_colours(types, {"PER", "NEW"}) == {"LOC": 0, "MISC": 1, "ORG": 2, "PER": 3, "NEW": 4}
    rules = dict(re.findall(r"\.(t\d+) \{ (.*) \}", "".join(explanation_html([worked], "title"))))
    assert len(set(rules.values())) == len(rules) == COLOURS >= 20
    assert set(type_colours(map(str, range(50))).values()) == {int(name[1:]) for name in rules}


# -- the command ----------------------------------------------------------------------------------------------


@pytest.fixture
def model(tagger, tmp_path):
    tagger.decoder = KBest(40)
    tagger.save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def file(dev, tmp_path):
    write_conll(tmp_path / "dev.txt", dev)
    return str(tmp_path / "dev.txt")


@pytest.fixture
def run(run):
    return partial(run, "explain")


@pytest.fixture
def fails(fails):
    return partial(fails, "explain")


def test_command_explains_all_changed_documents(run, model, file, dev, changed, tmp_path):
    text = run(model, file, "--html", tmp_path / "page.html")
    assert re.findall(r"^document (\d+) ", text, re.MULTILINE) == [str(one.row + 1) for one in changed]
    assert text.splitlines()[-1] == summarise(changed, dev).line()
    assert f"{file}:" in text
    assert text == run(model, file, "--candidates", 40)
    assert text != run(model, file, "--candidates", 2)
    page = Page([(tmp_path / "page.html").read_text(encoding="utf-8")])
    assert page.seen.count("section") == len(changed)
    assert summarise(changed, dev).line() in page.text


def test_command_explains_one_document(run, model, file, changed):
    text = run(model, file, "--document", changed[0].row + 1)
    assert re.findall(r"^document (\d+) ", text, re.MULTILINE) == [str(changed[0].row + 1)]
    assert "documents changed" not in text


def test_bad_input(fails, model, file, dev):
    assert "candidates" in fails(model, file, "--candidates", 0)
    for number in (0, len(dev) + 1):
        message = fails(model, file, "--document", number)
        assert f"document {number} " in message
        assert f"{len(dev)} documents" in message


def test_model_without_nonlocal_features(dev):
    with pytest.raises(InputError, match="non-local"):
        list(explain_changed(untrained(dev, ["w[0]"], []), dev))
    with pytest.raises(InputError, match="non-local"):
        explain(untrained(dev, ["w[0]"], []), dev, 0)
