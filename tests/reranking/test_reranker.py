"""Re-rankers: scores against naive sums, training and decoding."""

from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from structperc.analysis.explanation import explain
from structperc.analysis.nbest import nbest_scores
from structperc.chain import KBest, kbest, path_score
from structperc.criteria import CRFLoss, MarginLoss, PerceptronLoss
from structperc.data.tag_schemes import spans
from structperc.datamodules.sources import Conll, Synthetic
from structperc.errors import InputError
from structperc.models import ChainModel, Model
from structperc.nonlocal_features import ConjunctionConsistency, PhraseConsistency
from structperc.optim import Perceptron
from structperc.reranking import FirstScore, LocalFeatures, LocalSum
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.reranker import Reranker
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from structperc.training.report import evaluate
from tests.rerankers import QUIET, make_first
from tests.tiny import fit

first_score = partial(FirstScore, unit=4.0)


def local_features():
    return LocalFeatures(SparseLinear())


def both():
    return LocalSum([first_score(), local_features()])


def make_reranker(cache, local=first_score, **options):
    parts = {
        "first": make_first(MarginLoss(C=5), 2, Perceptron),
        "criterion": MarginLoss(C=5),
        "search": KBest(4),
        "nonlocal_features": [PhraseConsistency(), ConjunctionConsistency()],
        "decoder": KBest(6),
        "jackknife": JackKnife(folds=2, epochs=2, cache=str(cache)),
        "correct": "gold",
        **options,
    }
    return Reranker(scorer=local(), **parts)


@pytest.fixture
def data():
    return Synthetic(unit="document", train=5, dev=3, test=2, batch_size=1)


@pytest.fixture
def reranker(cache, data):
    """With its first model, and random weights for the second."""
    made = make_reranker(cache, both)
    made.train_first(data, **QUIET)
    data.encode(made.encode, "fit")
    torch.manual_seed(1)
    for parameter in made.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter)
    return made


def total_by_hand(reranker, batch, labels, first):
    """One labelling (1, 1, T) of a batch of one sequence."""
    total = float(reranker.candidate_scorer.nonlocal_scores(batch, labels, torch.ones(1, 1, dtype=torch.bool)))
    for part in reranker.scorer.parts if isinstance(reranker.scorer, LocalSum) else [reranker.scorer]:
        by_first = isinstance(part, FirstScore)
        total += float(part.weight) * first / 4.0 if by_first else float(path_score(part.scorer(batch), labels))
    return total


# -- scores ---------------------------------------------------------------------------------------------------


def test_training_with_total_scores(reranker, data):
    rows = data.encoded("train")
    for order in ([0, 1, 2], [3, 4]):
        batch = rows[order]
        listed = reranker.lists.batch(batch.rows)
        scored = reranker.score_list(batch, listed)
        total, gold = scored.candidate_scores + scored.candidate_nonlocal, scored.gold_scores + scored.gold_nonlocal
        for b, row in enumerate(order):
            one = rows[[row]]
            T = int(one.lengths)
            wanted = total_by_hand(reranker, one, one.gold[:, None], float(listed.gold_scores[b]))
            assert float(gold[b]) == pytest.approx(wanted, rel=1e-4, abs=1e-3)
            for k in range(reranker.lists.k):
                labels = listed.candidates.labels[b : b + 1, k : k + 1, :T]
                wanted = total_by_hand(reranker, one, labels, float(listed.candidates.scores[b, k]))
                assert float(total[b, k]) == pytest.approx(wanted, rel=1e-4, abs=1e-3)


def f1(labels, wanted):
    """Of two lists of label names, from the spans as sets."""
    found, gold = set(spans(labels)), set(spans(wanted))
    return 1.0 if found == gold else 2 * len(found & gold) / (len(found) + len(gold))


def test_closest_candidate_as_gold(cache, data):
    made = make_reranker(cache, both, correct="closest")
    made.train_first(data, **QUIET)
    data.encode(made.encode, "fit")
    rows, outside = data.encoded("train"), 0
    for row in range(len(rows)):
        batch = rows[[row]]
        listed = made.lists.batch(batch.rows)
        scored = made.score_list(batch, listed)
        names = [made.labels.decode(path) for path in listed.candidates.labels[0][listed.candidates.valid[0]]]
        wanted = made.labels.decode(batch.gold[0])
        outside += wanted not in names
        chosen = names.index(made.labels.decode(scored.gold[0]))
        assert f1(names[chosen], wanted) == max(f1(one, wanted) for one in names)
        assert float(scored.gold_scores[0]) == float(scored.candidate_scores[0, chosen])
        assert float(scored.gold_nonlocal[0]) == float(scored.candidate_nonlocal[0, chosen])
        if wanted in names:
            assert names[chosen] == wanted
    assert outside


def test_commands_on_rerankers(reranker, data):
    corpus = data.corpus("dev")
    for row in range(len(corpus)):
        one = explain(reranker, corpus, row, n=6)
        (best,) = [candidate for candidate in one.candidates if candidate.rank == 1]
        batch = data.encoded("dev")[[row]]
        assert best.labels == reranker.labels.decode(reranker.decode(batch)[0])
        total = reranker.rescore(batch, kbest(reranker(batch), 6)).scores[0, 0]
        assert best.total == pytest.approx(float(total), abs=0.01)
    chosen = nbest_scores(reranker, corpus, [6], progress=False).rows[0].chosen
    assert chosen.f1 == pytest.approx(evaluate(reranker, data, "dev").compute()["score"])


def test_decoding_takes_the_best_total(reranker, data):
    rows, corpus = data.encoded("dev"), data.corpus("dev")
    for row in range(len(rows)):
        batch = rows[[row]]
        with torch.no_grad():
            candidates = kbest(reranker.first(batch), 6)
        paths = [candidates.labels[:, k : k + 1] for k in range(6)]
        total_scores = [
            total_by_hand(reranker, batch, path, float(first))
            for path, first in zip(paths, candidates.scores[0], strict=True)
        ]
        assert torch.equal(reranker.decode(batch)[0], paths[max(range(6), key=total_scores.__getitem__)][0, 0])
        (found,) = reranker.kbest(corpus.subset(np.arange(len(corpus)) == row), 3)
        assert [one.score for one in found] == pytest.approx(sorted(total_scores, reverse=True)[:3], rel=1e-4, abs=1e-3)


def test_without_weights_the_first_model_decides(cache, data):
    made = make_reranker(cache, both)
    made.train_first(data, **QUIET)
    corpus = data.corpus("dev")
    assert made.label(corpus) == made.first.label(corpus)


def test_fewer_paths_than_candidates(cache, data):
    """-inf of what does not exist neither wins nor leads to NaN, whatever the sign of w0."""
    made = make_reranker(cache)
    made.train_first(data, **QUIET)
    for weight in (-1.0, 0.0, 1.0):
        with torch.no_grad():
            made.scorer.weight.fill_(weight)
        (found,) = made.kbest([["Anna"]], 50)
        assert 2 <= len(found) < 50
        assert all(torch.tensor(one.score).isfinite() for one in found)
        assert made.tag([["Anna"], []])[1] == []


def test_lists_with_missing_candidates_train(tmp_path):
    """Sentences of one token have fewer label sequences than the list has places."""
    sequences = ("a B-PER\n\nb O", "c B-LOC", "a O", "b B-PER", "c O", "d O")
    (tmp_path / "t.conll").write_text("".join(f"-DOCSTART- O\n\n{one}\n\n" for one in sequences))
    data = Conll(str(tmp_path), {"train": "t.conll"}, ["word", "label"], unit="document")
    made = make_reranker(tmp_path / "lists", search=KBest(10))
    made.train_first(data, **QUIET)
    assert not made.lists.valid.all()
    trainer = fit(made, data, 2)
    assert all(p.isfinite().all() for p in made.parameters())
    assert trainer.global_step


# -- training -------------------------------------------------------------------------------------------------


def naive_margin(made, data, epochs, C):
    """The margin rule on lists, one sequence at a time, on a vector (w0, non-local weights) in float64."""
    weights = torch.zeros(1 + sum(len(f.weight) for f in made.nonlocal_features), dtype=torch.float64)
    rows = data.encoded("train")
    vectors = {row: vectors_of(made, rows[[row]]) for row in range(len(rows))}
    loader = data.train_dataloader()
    updates = 0
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for (row,) in loader.sampler:
            gold, candidates, wrong = vectors[row]
            total_scores = candidates @ weights
            total_scores[~wrong] = -torch.inf
            rival = int(total_scores.argmax())
            if bool(wrong.any()) and float(gold @ weights - total_scores[rival]) <= C:
                weights += gold - candidates[rival]
                updates += 1
    return weights, updates


def vectors_of(made, batch):
    """Feature vectors of gold (F,) and of the candidates (K, F), and which of these are not gold."""
    listed = made.lists.batch(batch.rows)
    labels = torch.cat([batch.gold[:, None], listed.candidates.labels], 1)
    first = torch.cat([listed.gold_scores[:, None], listed.candidates.scores], 1)[0].double() / made.scorer.unit
    columns = [first]
    weights = [f.weight for f in made.nonlocal_features]
    for weight in weights:  # a feature's counts are the scores under unit weights
        for f in range(len(weight)):
            with torch.no_grad():
                for other in weights:
                    other.zero_()
                weight[f] = 1
                more = made.candidate_scorer.nonlocal_scores(batch, labels, torch.ones(1, labels.shape[1]).bool())
                columns.append(more[0].double())
    with torch.no_grad():
        for weight in weights:
            weight.zero_()
    wrong = (listed.candidates.labels[0] != batch.gold[0]).any(-1) & listed.candidates.valid[0]
    vectors = torch.stack(columns, 1)
    return vectors[0], vectors[1:], wrong


def test_training_is_the_margin_rule_on_the_lists(cache, data):
    made = make_reranker(cache, criterion=MarginLoss(C=3))
    made.train_first(data, **QUIET)
    data.encode(made.encode, "fit")
    wanted, updates = naive_margin(made, data, 2, 3)
    assert updates
    fit(made, data, 2, limit_val_batches=0)
    found = torch.cat([made.scorer.weight, *(f.weight for f in made.nonlocal_features)]).detach().double()
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)


def test_first_model_is_frozen(cache, data):
    made = make_reranker(cache, both)
    made.train_first(data, **QUIET)
    before = {name: p.clone() for name, p in made.named_parameters()}
    trainer = fit(made, data, 1)
    (optimizer,) = trainer.optimizers
    learning = {id(p) for group in optimizer.param_groups for p in group["params"]}
    changed = set()
    for name, parameter in made.named_parameters():
        assert (id(parameter) in learning) == parameter.requires_grad == (not name.startswith("first."))
        if not torch.equal(parameter, before[name]):
            changed.add(name.split(".")[0])
    assert changed == {"scorer", "nonlocal_features"}


# -- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": KBest(1)}, "search.k is 1"),
        ({"search": KBest(1), "criterion": PerceptronLoss()}, "2 candidates"),
        ({"correct": "nonsense"}, "correct "),
        ({"nonlocal_features": []}, "model.nonlocal_features"),
        ({"criterion": CRFLoss()}, "model.criterion: CRFLoss"),
        ({"first": make_first(nonlocal_features=[PhraseConsistency()])}, "first.nonlocal_features"),
    ],
)
def test_invalid_parts(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        make_reranker(tmp_path, **options)


def test_sentences_with_features_of_documents(tmp_path):
    made = make_reranker(tmp_path)
    with pytest.raises(InputError, match=r"PhraseConsistency .*data.unit: document"):
        made.train_first(Synthetic(unit="sentence", train=7, dev=1, test=1), **QUIET)
    assert not list(tmp_path.iterdir())


# -- saved models ---------------------------------------------------------------------------------------------


def test_loaded_equals_saved(reranker, data, tmp_path):
    reranker.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert isinstance(loaded, Reranker)
    corpus = data.corpus("dev")
    assert loaded.label(corpus) == reranker.label(corpus)
    assert loaded.kbest(corpus, 4) == reranker.kbest(corpus, 4)
    assert loaded.features is loaded.first.features
    assert {"first.scorer.node", "features.node_keys"} <= load_file(tmp_path / "model" / "model.safetensors").keys()
    loaded.save(tmp_path / "again")
    for file in (tmp_path / "model").iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_a_model_of_chains_is_no_reranker(reranker, tmp_path):
    reranker.first.save(tmp_path / "model")
    kinds = [type(kind.load(tmp_path / "model")) for kind in (Tagger, ChainModel, Model)]
    assert kinds == [Tagger, ChainModel, ChainModel]
    with pytest.raises(InputError, match=r"ChainModel.*Reranker"):
        Reranker.load(tmp_path / "model")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_same_lists_and_choices_on_cuda(tmp_path, data):
    found = []
    for accelerator in ("cpu", "cuda"):
        made = make_reranker(tmp_path / accelerator, local_features)
        made.train_first(data, accelerator=accelerator, enable_progress_bar=False)
        fit(made, data, 1, accelerator=accelerator)
        found.append(made.cpu().label(data.corpus("dev")))
    assert found[0] == found[1]


def test_best_allowed_candidate_is_the_target(reranker, data):
    """That of highest total score; without one, only the closest candidate is right."""
    reranker.correct = "closest"
    batch = reranker.encode(data.corpus("train"))[[0, 1]]
    listed, L = reranker.lists.batch(batch.rows), len(reranker.labels)
    candidates = listed.candidates
    plain = reranker.score_list(batch, listed)
    total = (plain.candidate_scores + plain.candidate_nonlocal).masked_fill(~candidates.valid, -torch.inf)
    allowed = torch.nn.functional.one_hot(candidates.labels[:, :2], L).bool().any(1)  # of the two best
    found = reranker.score_list(batch._replace(allowed=allowed), listed)
    right = (
        allowed[:, None].expand(-1, candidates.labels.shape[1], -1, -1).gather(3, candidates.labels[..., None]).all(2)
    )
    best = total.masked_fill(~right[..., 0], -torch.inf).argmax(1)
    assert torch.equal(found.gold, candidates.labels[torch.arange(2), best])
    assert torch.equal(found.gold_scores + found.gold_nonlocal, total.gather(1, best[:, None])[:, 0])
    nothing = torch.zeros_like(allowed)
    nothing[:, :, 0] = torch.arange(allowed.shape[1]) > 0  # all but the first token O
    nothing |= ~(torch.arange(allowed.shape[1]) < batch.lengths[:, None])[:, :, None]
    found = reranker.score_list(batch._replace(allowed=nothing), listed)
    wrong = (candidates.labels[:, :, 1:] != 0).sum(2).masked_fill(~candidates.valid, 10**6)
    closest = candidates.labels[torch.arange(2), wrong.argmin(1)]
    assert torch.equal(found.gold, closest)
    assert torch.equal(found.allowed.sum(2)[:, 0], torch.ones(2).long())


def test_training_from_incomplete_labels(tmp_path):
    text = "-DOCSTART- O\n\nAnna B-PER\nleft ?\n\n-DOCSTART- O\n\nAnna !O\nleft O\n\nOslo B-LOC\n"
    (tmp_path / "t.conll").write_text(text)
    options = {"unit": "document", "incomplete": True}
    data = Conll(str(tmp_path), {"train": "t.conll"}, ["word", "label"], **options)
    own = make_reranker(tmp_path / "lists", correct="closest", jackknife=JackKnife(2, 2, cache=str(tmp_path / "c")))
    own.train_first(data, **QUIET)
    fit(own, data, 1)
    assert own.tag([["Anna", "left"]])[0][0] != "O"
    with pytest.raises(InputError, match=r"t\.conll:4.*correct"):
        make_reranker(tmp_path / "lists").train_first(data, **QUIET)


def test_losses_are_multiplied_by_weights(reranker, data):
    batch, criterion = data.encoded("train")[[0, 1]], MarginLoss(C=1000)
    weights = torch.tensor([[3.0], [0.5]]).expand(batch.gold.shape)
    plain, found = (criterion(reranker.score_batch(b)) for b in (batch, batch._replace(weights=weights)))
    assert plain.all()
    torch.testing.assert_close(found, plain * torch.tensor([3.0, 0.5]))


def test_weights_within_a_document(tmp_path):
    (tmp_path / "t.conll").write_text("-DOCSTART- 1 O\n\nAnna 2 B-PER\nleft 1 O\n")
    data = Conll(str(tmp_path), {"train": "t.conll"}, ["word", "weight", "label"], unit="document")
    with pytest.raises(InputError, match=r"t\.conll:4"):
        make_reranker(tmp_path / "lists").train_first(data, **QUIET)
