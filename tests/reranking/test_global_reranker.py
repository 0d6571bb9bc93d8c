"""Re-rankers of global features: decisions string by string, what is made small, states, saved models."""

import json

import pytest
import torch

from structperc.analysis.explanation import explain, explain_changed
from structperc.analysis.nbest import nbest_scores
from structperc.analysis.weight_ranking import title
from structperc.builder import Builder, describe
from structperc.chain import KBest
from structperc.criteria import ExponentialLoss, MarginLoss, PerceptronLoss
from structperc.data.lexicon import LowerCaseLexicon
from structperc.errors import InputError
from structperc.metrics import SegmentF1
from structperc.nonlocal_features import (
    CandidateSegments,
    LexiconShapes,
    PhraseConsistency,
    QuotedTags,
    StartBigrams,
    WholeEntity,
)
from structperc.optim import Perceptron
from structperc.reranking import Boosting, FirstScore, VotedPerceptron
from structperc.reranking.bayes_point import BayesPoint
from structperc.reranking.global_reranker import GlobalReranker, compared_candidates, feature_ids
from structperc.reranking.reranker import Reranker
from structperc.taggers.tagger import Tagger
from structperc.training.run_callbacks import StopWhenConverged
from tests.checkpoints import assert_same
from tests.rerankers import (
    LIMIT,
    QUIET,
    Text,
    decisions,
    known,
    linear_totals,
    make_first,
    make_reranker,
    naive,
    ready,
    segments,
    total_scores,
    training_lists,
)
from tests.tiny import fit

RANKERS = {
    "boosting": lambda: Boosting(rounds=6),
    "vote": lambda: VotedPerceptron("vote", shuffle=True),
    "average": lambda: VotedPerceptron("average"),
    "last": lambda: VotedPerceptron("last", unit=2.0),
}

each_ranker = pytest.mark.parametrize("ranker", [RANKERS["boosting"], RANKERS["vote"]], ids=["boosting", "vote"])


@pytest.fixture
def data():
    return Text()


def after_two_epochs(cache, ranker):
    data = Text()
    made = ready(cache, data, ranker())
    fit(made, data, 2)
    return made


@pytest.fixture(scope="module", params=RANKERS.values(), ids=RANKERS)
def trained(request, cache):
    """After two epochs; not to be changed."""
    return after_two_epochs(cache, request.param)


@pytest.fixture(params=["boosting", "vote"])
def own(request, cache):
    """The same, for tests that change it."""
    return after_two_epochs(cache, RANKERS[request.param])


# -- what they decide -----------------------------------------------------------------------------------------


def test_decisions_by_strings(trained, data):
    assert trained.ranker.weights.any()
    by_hand, changed = naive(trained, data), 0
    for split in ("dev", "test"):
        corpus = data.corpus(split)
        decided, listed = decisions(trained, corpus), trained.kbest(corpus, 5)
        for row in range(len(corpus)):
            candidates = by_hand.listed(corpus, row, 5)
            wanted = total_scores(trained, candidates)
            best = wanted.index(max(wanted))
            assert decided[row] == candidates[best][0]
            assert [one.score for one in listed[row]] == pytest.approx(sorted(wanted, reverse=True), rel=1e-5, abs=1e-5)
            assert listed[row][0].labels == decided[row]
            changed += best > 0
    assert changed


def test_a_list_of_one_and_a_text_of_one_token(own, data):
    corpus = data.corpus("dev")
    assert int(corpus.lengths[0]) == 1
    assert decisions(own, corpus, 1) == decisions(own.first, corpus, 1)
    fit(own, data, 3)
    assert own.tag([["Bo"], [], ['"', "Bo", '"', "``", "met"]])[1] == []
    (found, nothing) = own.kbest([["Bo"], []], 50)
    assert 2 <= len(found) < 50
    assert all(torch.tensor(one.score).isfinite() for one in found)
    assert [one.labels for one in nothing] == [[]]


# -- what they make small -------------------------------------------------------------------------------------


def judged(made, data):
    """(losses, acts) of the ranker's criterion on all lists, under the published weights."""
    rows = data.encoded("train")
    batch = rows[list(range(len(rows)))]
    with torch.no_grad():
        return made.ranker.criterion.losses_and_updates(made.score_list(batch, made.lists.batch(batch.rows)))


def test_boosting_makes_the_criterion_small(cache, data):
    made = ready(cache, data)
    assert isinstance(made.criterion, ExponentialLoss)
    before = None
    for epochs in (1, 3):
        fit(made, data, epochs - (before is not None))
        assert float(judged(made, data)[0].sum()) == pytest.approx(made.ranker.objective, rel=1e-4)
        assert before is None or made.ranker.objective < before
        before = made.ranker.objective


def literal_pass(made, data, weights, w0):
    """One pass over the lists in their order -> mistakes; weights, w0 change."""
    mistakes = 0
    for row, listed in enumerate(training_lists(made, data)):
        scores = [w0 * first / made.ranker.unit + sum(weights.get(s, 0) for s in own) for _, first, own in listed]
        best, correct = scores.index(max(scores)), int(made.examples.correct[row])
        if best != correct:
            mistakes += 1
            w0 += listed[correct][1] / made.ranker.unit - listed[best][1] / made.ranker.unit
            for sign, k in ((1, correct), (-1, best)):
                for string in listed[k][2]:
                    weights[string] = weights.get(string, 0) + sign
    return mistakes, w0


def test_the_perceptron_counts_mistakes(cache, data):
    made = ready(cache, data, VotedPerceptron("last"))
    assert isinstance(made.criterion, PerceptronLoss)
    weights, w0, mistakes = {}, 0.0, []
    for _ in range(3):
        one, w0 = literal_pass(made, data, weights, w0)
        mistakes.append(one)
    fit(made, data, 3)
    assert made.ranker.mistakes.tolist() == mistakes
    assert made.ranker.objective == mistakes[-1] > 0
    assert made.ranker.first_weight == pytest.approx(w0)
    learned = zip(known(made), made.ranker.weights.tolist(), strict=True)
    assert {name: w for name, w in learned if w} == {name: w for name, w in weights.items() if w}
    totals = [linear_totals(made, one) for one in training_lists(made, data)]
    chosen = torch.tensor([one.index(max(one)) for one in totals])
    assert judged(made, data)[1].tolist() == (chosen != made.examples.correct).tolist()


# -- training -------------------------------------------------------------------------------------------------


def test_epochs_do_not_depend_on_batches(cache):
    found, given = [], Text()
    for options in ({"batch_size": 1}, {"batch_size": 100, "shuffle": False}):
        made = ready(cache, given, VotedPerceptron(shuffle=True))
        trainer = fit(made, Text(**options), 2)
        assert trainer.global_step == len(made.ranker.mistakes) == 2
        found.append(made.state_dict())
    assert_same(*found)


def test_stops_when_the_ranker_has_finished(cache, data):
    made = ready(cache, data, VotedPerceptron("last"), nonlocal_features=[StartBigrams(), WholeEntity()])
    trainer = fit(made, data, 300, limit_val_batches=0)
    assert made.ranker.stop_reason
    assert trainer.current_epoch == len(made.ranker.mistakes) < 300
    assert not judged(made, data)[1].any()
    before = {name: value.clone() for name, value in made.state_dict().items()}
    assert fit(made, data, 3, limit_val_batches=0).current_epoch == 1
    assert_same(made.state_dict(), before)


def test_without_search_errors(cache, data):
    made = ready(cache, data)
    assert fit(made, data, 6, callbacks=[StopWhenConverged()]).current_epoch == 6
    assert made.training_error() != made.training_error()


def test_development_lists_are_read_once_in_a_fit(cache, data, monkeypatch):
    made, read = ready(cache, data), []
    find_features = GlobalReranker.find_features
    monkeypatch.setattr(GlobalReranker, "find_features", lambda *given: read.append(1) or find_features(*given))
    fit(made, data, 4)
    assert len(read) == 1
    with monkeypatch.context() as broken:
        broken.setattr(Boosting, "epoch", None)
        with pytest.raises(TypeError):
            fit(made, data, 1)
    other = Text(dev=3)
    other.encode(made.encode, "fit")
    fit(made, other, 1)
    assert len(read) == 3
    made.trainer.validate(made, datamodule=other, verbose=False)
    made.trainer.validate(made, datamodule=other, verbose=False)
    assert len(read) == 5


@each_ranker
def test_trained_again(cache, data, ranker):
    made = ready(cache, data, ranker())
    kept, name = made.ranker, made.fingerprint
    fit(made, data, 2)
    state = {name: value.clone() for name, value in made.state_dict().items()}
    made.train_first(data, **QUIET)
    assert made.ranker is kept
    assert made.fingerprint == name
    assert not made.ranker.weights.any()
    assert not made.scorer.weight.any()
    fit(made, data, 2)
    assert_same(made.state_dict(), state)


def test_another_first_model_and_merged_types(cache):
    """Of maximum entropy it is in all tests above."""
    data = Text(types={"PER": "NAME", "LOC": "NAME"})
    made = ready(cache, data, first=make_first(MarginLoss(C=5), 2, Perceptron))
    fit(made, data, 2)
    assert made.labels.type_names == ("NAME",) or list(made.labels.type_names) == ["NAME"]
    assert any(name.endswith("/NAME") for _, name in known(made))
    by_hand, corpus = naive(made, data), data.corpus("dev")
    decided = decisions(made, corpus)
    for row in range(len(corpus)):
        candidates = by_hand.listed(corpus, row, 5)
        wanted = total_scores(made, candidates)
        assert decided[row] == candidates[wanted.index(max(wanted))][0]


# -- saved models ---------------------------------------------------------------------------------------------


def outcome(made, data):
    return made.label(data.corpus("dev")), made.kbest(data.corpus("test"), 5)


def test_finalize_drops_unused_strings(own, data):
    before, strings = outcome(own, data), known(own)
    used = own.ranker.used_mask.tolist()
    own.finalize()
    assert known(own) == [string for string, kept in zip(strings, used, strict=True) if kept]
    assert 0 < len(known(own)) < len(strings)
    assert all(len(f.weight) == len(f.keys) == len(f.strings) for f in own.global_features)
    assert outcome(own, data) == before
    own.finalize()
    assert outcome(own, data) == before


@pytest.mark.parametrize("settled", [True, False])
def test_loaded_equals_saved(own, data, tmp_path, settled):
    if settled:
        own.finalize()
    own.save(tmp_path / "model")
    assert {file.name for file in (tmp_path / "model").iterdir()} == {"model.json", "model.safetensors", "README.md"}
    loaded = Tagger.load(tmp_path / "model")
    assert type(loaded) is GlobalReranker
    assert outcome(loaded, data) == outcome(own, data)
    for feature, other in zip(own.global_features, loaded.global_features, strict=True):
        assert (feature.strings, feature.typed) == (other.strings, other.typed)
        assert (feature.strings is not None) == settled
        assert describe(feature) == describe(other)
        assert torch.equal(feature.keys, other.keys)
        assert feature is own.global_features[0] or len(feature.lexicon.words)
        assert feature is own.global_features[0] or torch.equal(feature.lexicon.words, other.lexicon.words)
    assert loaded.features is loaded.first.features
    loaded.save(tmp_path / "again")
    for file in (tmp_path / "model").iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


@each_ranker
def test_model_without_features(cache, data, tmp_path, ranker):
    """No string is left of it; where nothing is learned the first model decides."""
    made = ready(cache, data, ranker())
    assert made.label(data.corpus("dev")) == made.first.label(data.corpus("dev"))
    made.ranker.start(made.examples)
    made.finalize()
    assert known(made) == []
    made.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert known(loaded) == []
    assert loaded.label(data.corpus("dev")) == made.first.label(data.corpus("dev"))


def test_no_training_after_finalize(cache, data):
    made = ready(cache, data)
    fit(made, data, 1)
    made.finalize()
    with pytest.raises(InputError, match="`structperc rerank`"):
        fit(made, data, 2)
    made.train_first(data, **QUIET)
    fit(made, data, 1)
    assert len(made.ranker.losses) == 6


def test_saved_lexicon_of_a_text(cache, data, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("anna bo rome SAW The")
    lexicon = LowerCaseLexicon(str(tmp_path / "text" / "a.txt"))
    made = ready(cache, data, nonlocal_features=[LexiconShapes(lexicon=lexicon), WholeEntity(typed=False)])
    fit(made, data, 1)
    made.finalize()
    made.save(tmp_path / "model")
    (tmp_path / "text" / "a.txt").unlink()
    loaded = Tagger.load(tmp_path / "model")
    assert outcome(loaded, data) == outcome(made, data)
    assert "anna" in loaded.global_features[0].lexicon
    assert title(loaded.global_features[0]) == f"LexiconShapes(lexicon=LowerCaseLexicon(text={str(lexicon.text)!r}))"
    assert title(loaded.global_features[1]) == "WholeEntity(typed=False)"


def test_parts_from_plain_json():
    for part in (Boosting(7, 0.5, 2.0), VotedPerceptron("last", 2.0, 5, True), QuotedTags(4, LowerCaseLexicon("a", 1))):
        told = json.loads(json.dumps(describe(part)))
        again = Builder().part(told, type(part), "part")
        assert describe(again) == describe(part) == told


# -- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nonlocal_features": [WholeEntity(), PhraseConsistency()]}, "nonlocal_features: PhraseConsistency"),
        ({"search": KBest(1)}, "search.k is 1"),  # and all that other re-rankers check
        ({"min_sequences": 0}, "min_sequences "),
    ],
)
def test_invalid_parts(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        make_reranker(tmp_path, **options)


def early(tmp_path, data, **options):
    """-> the complaint about training, which leaves no model."""
    with pytest.raises(InputError) as error:
        make_reranker(tmp_path / "cache", **options).train_first(data, **QUIET)
    assert not (tmp_path / "cache").exists()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_mistakes_before_training(tmp_path):
    lexicon = LowerCaseLexicon(str(tmp_path / "none.txt"))
    assert "none.txt" in early(tmp_path, Text(), nonlocal_features=[LexiconShapes(lexicon=lexicon)])
    assert "WholeEntity needs segment labels" in early(tmp_path, Text(scheme="none"))
    assert "train" in early(tmp_path, Text(train=0))


def test_global_features_in_other_models(tmp_path, data):
    tagger = make_first(nonlocal_features=[WholeEntity()])
    with pytest.raises(InputError, match=r"WholeEntity .*GlobalReranker"):
        fit(tagger, data, 1)
    assert not tagger.fitted
    plain = Reranker(make_first(), FirstScore(), MarginLoss(C=1), KBest(3), [WholeEntity()])
    with pytest.raises(InputError, match=r"WholeEntity .*GlobalReranker"):
        plain.train_first(data, **QUIET)


def silent(**options):
    """A first model that gives the same score to all."""
    return make_first(PerceptronLoss(), 1, lambda p: torch.optim.SGD(p, lr=0.0), **options)


def test_equal_candidates(cache):
    data = Text(train=6)
    made = ready(cache, data, first=silent(), nonlocal_features=[QuotedTags(LIMIT)], min_sequences=100)
    assert made.examples.n_features == 0
    with pytest.raises(InputError, match="add other features"):
        fit(made, data, 1)


def test_gold_outside_all_lists(cache):
    data = Text(train=6)
    corpus = data.corpus("train")
    labels = ["B-PER" if t % 2 else "B-LOC" for n in corpus.lengths.tolist() for t in range(n, 0, -1)]
    data._corpora["train"] = corpus.replace_column("label", labels)
    made = ready(cache, data, first=silent(), search=KBest(2), correct="gold")
    assert made.examples.correct.eq(-1).all()
    with pytest.raises(InputError, match="correct: closest"):
        fit(made, data, 1)
    made = ready(cache, data, VotedPerceptron(), first=silent(), search=KBest(2))
    fit(made, data, 1)
    assert len(made.ranker.mistakes) == 1


def test_fit_without_lists_or_with_others(cache, data):
    made = make_reranker(cache)
    with pytest.raises(InputError, match="candidate lists"):
        fit(made, data, 1)
    made.train_first(data, **QUIET)
    with pytest.raises(InputError, match="training data"):
        fit(made, Text(train=12), 1)


def test_no_start_from_a_bayes_point(cache, data):
    made = ready(cache, data)
    with pytest.raises(InputError, match="BayesPoint: "):
        fit(made, data, 1, callbacks=[BayesPoint(passes=1)])


# -- commands -------------------------------------------------------------------------------------------------


def test_scores_of_shorter_lists(trained, data):
    """A vote among fewer candidates is another vote."""
    corpus = data.corpus("dev")
    for row in nbest_scores(trained, corpus, [1, 2, 3, 5], progress=False).rows:
        trained.decoder, metric = KBest(row.n), SegmentF1(trained.labels)
        for batch in trained.batches(corpus):
            metric.update(trained.decode(batch), batch.gold, batch.lengths, batch.sentences)
        assert row.chosen == metric.compute()


def test_explanations_add_up_to_the_totals(cache, data):
    for ranker in (Boosting(rounds=20), VotedPerceptron("average")):
        made = ready(cache, data, ranker)
        fit(made, data, 2)
        made.finalize()
        by_hand, corpus = naive(made, data), data.corpus("dev")
        for row in range(len(corpus)):
            one, listed = explain(made, corpus, row, 5), by_hand.listed(corpus, row, 5)
            wanted = linear_totals(made, listed)
            for i, candidate in enumerate(one.candidates):
                k = candidate.local_rank - 1
                assert candidate.labels == listed[k][0]
                assert candidate.total == pytest.approx(wanted[k], rel=1e-4, abs=1e-4)
                assert candidate.local == pytest.approx(made.ranker.first_weight * listed[k][1], rel=1e-5)
                own = {string for _, string in listed[k][2]}
                assert all((term.name in own) == bool(term.counts[i]) for term in one.terms)
        names = {name for _, name in known(made)}
        changed = list(explain_changed(made, corpus, 5, progress=False))
        assert changed
        assert {term.name for one in changed for term in one.terms} <= names


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@each_ranker
def test_same_lists_and_choices_on_cuda(tmp_path, data, ranker):
    found = []
    for accelerator in ("cpu", "cuda"):
        made = make_reranker(tmp_path / "same", ranker())
        made.train_first(data, **QUIET)
        fit(made, data, 2, accelerator=accelerator)
        made.finalize()
        found.append(made.cpu().label(data.corpus("dev")))
    assert found[0] == found[1]


# -- features of lists ------------------------------------------------------------------------------------------


def closest(corpus, row, paths):
    """The candidate of highest F1, of those with the fewest segments, of those the first."""
    start, end = int(corpus.starts[row]), int(corpus.starts[row + 1])
    boundaries = [b - start for b in corpus.sentences.tolist() if start <= b <= end]
    wanted, *own = (segments(path, boundaries) for path in (corpus.columns["label"][start:end], *paths))
    f1 = [2 * len(wanted & one) / max(1, len(wanted) + len(one)) for one in own]
    return max(range(len(paths)), key=lambda k: (f1[k], -len(own[k]), -k))


@pytest.mark.parametrize(("unit", "correct", "min_sequences"), [("sentence", "gold", 3), ("document", "closest", 1)])
def test_examples_are_the_strings_of_the_lists(cache, unit, correct, min_sequences):
    data = Text(unit=unit)
    made = ready(cache, data, correct=correct, min_sequences=min_sequences)
    lists, corpus, examples = list(training_lists(made, data)), data.corpus("train"), made.examples
    holders = {}
    for row, listed in enumerate(lists):
        for string in set().union(*(strings for *_, strings in listed)):
            holders.setdefault(string, set()).add(row)
    features = known(made)
    assert len(features) == len(set(features)) == examples.n_features
    assert set(features) == {string for string, rows in holders.items() if len(rows) >= min_sequences}
    assert [len(rows) < min_sequences for rows in holders.values()].count(True) > 0 or min_sequences == 1
    outside = 0
    for row, listed in enumerate(lists):
        shared = set.intersection(*(strings for *_, strings in listed))
        for k, (_, score, strings) in enumerate(listed):
            found = [features[i] for i in examples.features_of(row, k).tolist()]
            assert len(set(found)) == len(found)
            assert set(found) == (strings - shared) & set(features)
            assert float(examples.first[row, k]) == score
        assert examples.valid[row].tolist() == [k < len(listed) for k in range(5)]
        paths = [path for path, *_ in listed]
        gold = corpus.columns["label"][int(corpus.starts[row]) : int(corpus.starts[row + 1])]
        outside += gold not in paths
        if gold in paths or correct == "gold":
            assert int(examples.correct[row]) == (paths.index(gold) if gold in paths else -1)
        else:
            assert int(examples.correct[row]) == closest(corpus, row, paths)
    assert 0 < outside < len(lists)
    assert min_sequences > 1 or {feature for feature, _ in features} == set(range(5))


def test_independence_of_candidates(cache, data):
    made = ready(cache, data)
    features, corpus, by_hand = known(made), data.corpus("dev"), naive(made, data)
    for row in range(len(corpus)):
        batch = made.encode(corpus)[[row]]
        candidates = KBest(5)(made(batch))
        candidate_ids, ids = made.find_features(batch, candidates)[1:]
        for k in candidates.valid[0].nonzero()[:, 0].tolist():
            alone = candidates.labels[:, k : k + 1], candidates.valid[:, k : k + 1]
            owner, own = feature_ids(made.global_features, CandidateSegments(batch, *alone, made.labels))
            assert owner.eq(0).all()
            assert own.sort().values.equal(ids[candidate_ids == k].sort().values)
            path = made.labels.decode(candidates.labels[0, k])
            assert {features[i] for i in own.tolist()} == by_hand.strings(corpus, row, path) & set(features)


def test_best_allowed_candidate_is_compared_with_those_that_are_not(cache, data):
    made = ready(cache, data)
    batch = made.encode(data.corpus("dev"))[[0]]
    candidates, L = KBest(4)(made(batch)), len(made.labels)
    sets = torch.nn.functional.one_hot(candidates.labels[:, 1:3], L).bool().any(1)
    right, compared = compared_candidates(batch._replace(allowed=sets), candidates, made.labels, "closest")
    allowed = [all(sets[0, t, y] for t, y in enumerate(path)) for path in candidates.labels[0].tolist()]
    assert right.tolist() == [allowed.index(True)]
    best = allowed.index(True)
    expected = [k == best or not own for k, own in enumerate(allowed)]
    assert compared[0].tolist() == (torch.tensor(expected) & candidates.valid[0]).tolist()


def test_weights_of_sequences(cache, data, monkeypatch):
    made, corpus = ready(cache, data), data.corpus("train")
    weights = [(2.0, 0.5, 3.0)[row % 3] for row in range(len(corpus))]
    column = [str(w) for w, length in zip(weights, corpus.lengths.tolist(), strict=True) for _ in range(length)]
    monkeypatch.setattr(data, "corpus", lambda split: corpus.replace_column("weight", column))
    made._fit_lists(data, False)
    assert made.examples.weights.tolist() == weights
    made.ranker.supports_weights = False
    with pytest.raises(InputError, match="weight"):
        made.requirements.check_weights(data.corpus("train"))
