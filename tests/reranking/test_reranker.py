"""Re-rankers: scores against naive sums, training and decoding."""

from functools import partial
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
from safetensors.torch import load_file

from structperc.analysis.explanation import explain
from structperc.analysis.nbest import nbest_scores
from structperc.chain import KBest, LabelBias, kbest, path_score
from structperc.criteria import CRFLoss, HingeLoss, LocalAndNonlocal, MarginLoss
from structperc.data.tag_schemes import spans
from structperc.datamodules.sources import Conll, Synthetic
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import ConjunctionConsistency, PhraseConsistency
from structperc.optim import Perceptron
from structperc.reranking import FirstScore, LocalFeatures, LocalSum
from structperc.reranking.bayes_point import BayesPoint
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.reranker import Reranker
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from structperc.training.report import evaluate

CONFIGS = Path(__file__).parents[2] / "configs" / "embedded"
TRAINER = {"accelerator": "cpu", "enable_progress_bar": False}
LOCAL = {
    "first score": partial(FirstScore, unit=4.0),
    "local features": lambda: LocalFeatures(SparseLinear()),
    "both": lambda: LocalSum([FirstScore(unit=4.0), LocalFeatures(SparseLinear())]),
}

each_local = pytest.mark.parametrize("local", LOCAL.values(), ids=LOCAL)


def make_first(**options):
    features = FeatureExtractor([{"of": ["w"], "at": [-1, 0]}, "bias"], ["bias"], cutoff=1, progress=False)
    options = {"criterion": MarginLoss(C=5), "search": KBest(2), "optimizer": Perceptron, **options}
    return Tagger(features, SparseLinear(transitions=False), **options)


def make_reranker(cache, local=LOCAL["first score"], **options):
    parts = {
        "first": make_first(),
        "criterion": MarginLoss(C=5),
        "search": KBest(4),
        "nonlocal_features": [PhraseConsistency(), ConjunctionConsistency()],
        "decoder": KBest(6),
        "jackknife": JackKnife(folds=2, epochs=2, cache=str(cache)),
        "correct": "gold",
        **options,
    }
    return Reranker(scorer=local(), **parts)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("candidates")


@pytest.fixture
def data():
    return Synthetic(unit="document", train=5, dev=3, test=2, batch_size=1)


@pytest.fixture(params=LOCAL.values(), ids=LOCAL)
def reranker(request, cache, data):
    """With its first model, and random weights for the second."""
    made = make_reranker(cache, request.param)
    made.train_first(data, **TRAINER)
    data.encode(made.encode, "fit")
    torch.manual_seed(1)
    for parameter in made.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter)
    return made


def nonlocal_score(reranker, words, sentences, labels):
    """Counts by hand of same phrases and of lists, for the two features of `make_reranker`."""
    phrase, conjunction = reranker.nonlocal_features
    names = phrase.names(reranker.labels.type_names), conjunction.names(reranker.labels.type_names)
    mentions, start = [], 0
    while start < len(words):
        end = start
        while end < len(words) and sentences[end] == sentences[start]:
            end += 1
        mentions += [(s.type, start + s.start, start + s.end) for s in spans(labels[start:end])]
        start = end
    total = 0.0
    for i, (kind, a, b) in enumerate(mentions):
        for other, c, d in mentions[i + 1 :]:
            pair = ",".join(sorted([kind, other], key=reranker.labels.type_names.index))
            if words[a:b] == words[c:d]:
                total += float(phrase.weight[names[0].index(f"phrase({pair})")])
    chains = []
    for mention in mentions:
        between = words[chains[-1][-1][2] : mention[1]] if chains else []
        near = chains and sentences[chains[-1][-1][1]] == sentences[mention[1]]
        joined = near and between and all(w.casefold() in conjunction.connectors for w in between)
        if joined:
            chains[-1].append(mention)
        else:
            chains.append([mention])
    for chain in chains:
        for i, (kind, *_) in enumerate(chain):
            for other, *_ in chain[i + 1 :]:
                pair = ",".join(sorted([kind, other], key=reranker.labels.type_names.index))
                total += float(conjunction.weight[names[1].index(f"conjunction({pair})")])
    return total


def text_of(data, split, row):
    corpus = data.corpus(split)
    a, b = corpus.starts[row], corpus.starts[row + 1]
    return corpus.columns["word"][a:b]


def total_by_hand(reranker, batch, words, labels, first):
    """One labelling (1, 1, T) of a batch of one sequence."""
    local = 0.0
    for part in reranker.scorer.parts if isinstance(reranker.scorer, LocalSum) else [reranker.scorer]:
        by_first = isinstance(part, FirstScore)
        local += float(part.weight) * first / 4.0 if by_first else float(path_score(part.scorer(batch), labels))
    names = reranker.labels.decode(labels[0, 0])
    return local + nonlocal_score(reranker, words, batch.sentences[0].tolist(), names)


# -- scores ---------------------------------------------------------------------------------------------------


def test_training_with_total_scores(reranker, data):
    rows = data.encoded("train")
    for order in ([0, 1, 2], [3, 4]):
        batch = rows[order]
        listed = reranker.lists.batch(batch.rows)
        scored = reranker.score_list(batch, listed)
        total, gold = scored.candidate_scores + scored.candidate_nonlocal, scored.gold_scores + scored.gold_nonlocal
        for b, row in enumerate(order):
            one, words = rows[[row]], text_of(data, "train", row)
            T = len(words)
            wanted = total_by_hand(reranker, one, words, one.gold[:, None], float(listed.gold_scores[b]))
            assert float(gold[b]) == pytest.approx(wanted, rel=1e-4, abs=1e-3)
            for k in range(reranker.lists.k):
                labels, first = (
                    listed.candidates.labels[b : b + 1, k : k + 1, :T],
                    float(listed.candidates.scores[b, k]),
                )
                wanted = total_by_hand(reranker, one, words, labels, first)
                assert float(total[b, k]) == pytest.approx(wanted, rel=1e-4, abs=1e-3)


def f1(labels, wanted):
    """Of two lists of label names, from the spans as sets."""
    found, gold = set(spans(labels)), set(spans(wanted))
    return 1.0 if found == gold else 2 * len(found & gold) / (len(found) + len(gold))


@each_local
def test_closest_candidate_as_gold(cache, data, local):
    made = make_reranker(cache, local, correct="closest")
    made.train_first(data, **TRAINER)
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
        assert best.total == pytest.approx(
            float(reranker.rescore(batch, kbest(reranker(batch), 6)).scores[0, 0]), abs=0.01
        )
    chosen = nbest_scores(reranker, corpus, [6], progress=False).rows[0].chosen
    assert chosen.f1 == pytest.approx(evaluate(reranker, data, "dev").compute()["score"])


def test_decoding_takes_the_best_total(reranker, data):
    rows = data.encoded("dev")
    for row in range(len(rows)):
        batch, words = rows[[row]], text_of(data, "dev", row)
        with torch.no_grad():
            candidates = kbest(reranker.first(batch), 6)
        paths = [candidates.labels[:, k : k + 1] for k in range(6)]
        total_scores = [
            total_by_hand(reranker, batch, words, path, float(first))
            for path, first in zip(paths, candidates.scores[0], strict=True)
        ]
        assert torch.equal(reranker.decode(batch)[0], paths[max(range(6), key=total_scores.__getitem__)][0, 0])
        (found,) = reranker.candidates(data_part(data, row), 3)
        assert [one.score for one in found] == pytest.approx(sorted(total_scores, reverse=True)[:3], rel=1e-4, abs=1e-3)


def data_part(data, row):
    corpus = data.corpus("dev")
    return corpus.subset(torch.arange(len(corpus)).eq(row).numpy())


def test_independence_of_the_batch(reranker, data):
    rows = data.encoded("dev")
    together = reranker.decode(rows[[0, 1, 2]])
    for row in range(3):
        alone = reranker.decode(rows[[row]])[0]
        assert torch.equal(together[row, : len(alone)], alone)


@each_local
def test_without_weights_the_first_model_decides(cache, data, local):
    made = make_reranker(cache, local)
    made.train_first(data, **TRAINER)
    corpus = data.corpus("dev")
    assert made.label(corpus) == made.first.label(corpus)


def test_fewer_paths_than_candidates(cache, data):
    """-inf of what does not exist neither wins nor leads to NaN, whatever the sign of w0."""
    made = make_reranker(cache)
    made.train_first(data, **TRAINER)
    for weight in (-1.0, 0.0, 1.0):
        with torch.no_grad():
            made.scorer.weight.fill_(weight)
        (found,) = made.kbest([["Anna"]], 50)
        assert 2 <= len(found) < 50
        assert all(torch.tensor(one.score).isfinite() for one in found)
        assert made.tag([["Anna"], []])[1] == []


def test_lists_with_missing_candidates_train(tmp_path):
    """Sentences of one token have fewer labellings than the list has places."""
    data = Synthetic(unit="document", train=7, dev=1, test=1)
    short = data.corpus("train").subset(torch.ones(7).bool().numpy())
    kept = torch.zeros(short.tokens).bool()
    kept[torch.from_numpy(short.starts[:-1])] = True
    columns = {role: [v for v, k in zip(values, kept, strict=True) if k] for role, values in short.columns.items()}
    columns["label"] = ["B-PER", "O", "B-LOC", "O", "B-PER", "O", "O"]
    boundaries = torch.arange(8).numpy()
    data._corpora["train"] = type(short)(columns, boundaries, boundaries, short.documents)
    data._corpora |= {"dev": None, "test": None}
    made = make_reranker(tmp_path, search=KBest(10))
    made.train_first(data, **TRAINER)
    assert not made.lists.valid.all()
    trainer = fit(made, data, 2)
    assert all(p.isfinite().all() for p in made.parameters())
    assert trainer.global_step


# -- training -------------------------------------------------------------------------------------------------


def fit(made, data, epochs, **options):
    options = {"logger": False, "enable_checkpointing": False, "enable_model_summary": False, **TRAINER, **options}
    trainer = pl.Trainer(max_epochs=epochs, **options)
    trainer.fit(made, datamodule=data)
    return trainer


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
                columns.append(made.nonlocal_scores(batch, labels, torch.ones(1, labels.shape[1]).bool())[0].double())
    with torch.no_grad():
        for weight in weights:
            weight.zero_()
    wrong = (listed.candidates.labels[0] != batch.gold[0]).any(-1) & listed.candidates.valid[0]
    vectors = torch.stack(columns, 1)
    return vectors[0], vectors[1:], wrong


def test_training_is_the_margin_rule_on_the_lists(cache, data):
    made = make_reranker(cache, criterion=MarginLoss(C=3))
    made.train_first(data, **TRAINER)
    data.encode(made.encode, "fit")
    wanted, updates = naive_margin(made, data, 2, 3)
    assert updates
    fit(made, data, 2, limit_val_batches=0)
    found = torch.cat([made.scorer.weight, *(f.weight for f in made.nonlocal_features)]).detach().double()
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)


@each_local
def test_first_model_is_frozen(cache, data, local):
    made = make_reranker(cache, local)
    made.train_first(data, **TRAINER)
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


def test_order_of_parameters(cache, data):
    """Averages in checkpoints are found by the numbers that the optimizer gives its parameters."""
    made = make_reranker(cache, LOCAL["local features"])
    made.train_first(data, **TRAINER)
    learns = [p.requires_grad for p in made.parameters()]
    assert learns == sorted(learns, reverse=True)
    assert set(learns) == {True, False}


@pytest.mark.parametrize("criterion", [LocalAndNonlocal(C=5), HingeLoss()], ids=lambda c: type(c).__name__)
def test_other_criteria_on_candidates(cache, data, criterion):
    made = make_reranker(cache, LOCAL["local features"], criterion=criterion)
    made.train_first(data, **TRAINER)
    fit(made, data, 1)
    assert made.scorer.scorer.node.any()


def test_starts_from_its_bayes_point(cache, data):
    made = make_reranker(cache, LOCAL["local features"])
    made.train_first(data, **TRAINER)
    first = made.first.scorer.node.clone()
    fit(made, data, 1, callbacks=[BayesPoint(passes=2)])
    assert torch.equal(made.first.scorer.node, first)
    assert made.scorer.scorer.node.any()


def test_trained_again(cache, data):
    made = make_reranker(cache)
    made.train_first(data, **TRAINER)
    name = made.fingerprint
    fit(made, data, 1)
    made.train_first(data, **TRAINER)
    assert made.fingerprint == name
    assert not made.scorer.weight.any()


# -- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": KBest(1)}, "search.k is 1"),
        ({"nonlocal_features": []}, "model.nonlocal_features"),
        ({"criterion": CRFLoss()}, "model.criterion: CRFLoss"),
        ({"first": make_first(nonlocal_features=[PhraseConsistency()])}, "first.nonlocal_features"),
    ],
)
def test_invalid_parts(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        make_reranker(tmp_path, **options)


def test_one_candidate(tmp_path):
    from structperc.criteria import PerceptronLoss

    with pytest.raises(InputError, match="2 candidates"):
        make_reranker(tmp_path, search=KBest(1), criterion=PerceptronLoss())


def test_sentences_with_features_of_documents(tmp_path):
    made = make_reranker(tmp_path)
    with pytest.raises(InputError, match=r"PhraseConsistency .*data.unit: document"):
        made.train_first(Synthetic(unit="sentence", train=7, dev=1, test=1), **TRAINER)
    assert not list(tmp_path.iterdir())


def test_labels_of_development_data(tmp_path, data):
    corpus = data.corpus("dev")
    data._corpora["dev"] = corpus.replace_column("label", ["B-NEW", *corpus.columns["label"][1:]])
    with pytest.raises(InputError, match="'B-NEW'"):
        make_reranker(tmp_path).train_first(data, **TRAINER)
    assert not list(tmp_path.iterdir())


def test_fit_without_lists_or_with_others(cache, data):
    made = make_reranker(cache)
    with pytest.raises(InputError, match="candidate lists"):
        fit(made, data, 1)
    made.train_first(data, **TRAINER)
    with pytest.raises(InputError, match="training data"):
        fit(made, Synthetic(unit="document", train=4, dev=3, test=2), 1)


# -- saved models ---------------------------------------------------------------------------------------------


def test_loaded_equals_saved(reranker, data, tmp_path):
    reranker.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert isinstance(loaded, Reranker)
    corpus = data.corpus("dev")
    assert loaded.label(corpus) == reranker.label(corpus)
    assert loaded.candidates(corpus, 4) == reranker.candidates(corpus, 4)
    assert loaded.features is loaded.first.features
    assert {"first.scorer.node", "features.node_keys"} <= load_file(tmp_path / "model" / "model.safetensors").keys()
    loaded.save(tmp_path / "again")
    for file in (tmp_path / "model").iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_saved_biases(reranker, data, tmp_path):
    reranker.add_bias("recall", LabelBias({"O": -50.0}, k=3))
    reranker.use_bias("recall")
    reranker.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.default_bias == "recall"
    assert loaded.label(data.corpus("dev")) == reranker.label(data.corpus("dev"))


def test_a_tagger_is_no_reranker(reranker, tmp_path):
    reranker.first.save(tmp_path / "model")
    assert type(Tagger.load(tmp_path / "model")) is Tagger
    with pytest.raises(InputError, match=r"ChainModel.*Reranker"):
        Reranker.load(tmp_path / "model")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_same_lists_and_choices_on_cuda(tmp_path, data):
    found = []
    for accelerator in ("cpu", "cuda"):
        made = make_reranker(tmp_path / accelerator, LOCAL["local features"])
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
    own.train_first(data, **TRAINER)
    pl.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, **TRAINER).fit(own, datamodule=data)
    assert own.tag([["Anna", "left"]])[0][0] != "O"
    with pytest.raises(InputError, match=r"t\.conll:4.*correct"):
        make_reranker(tmp_path / "lists").train_first(data, **TRAINER)


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
        make_reranker(tmp_path / "lists").train_first(data, **TRAINER)
