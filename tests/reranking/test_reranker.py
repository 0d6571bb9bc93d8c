"""Re-rankers: scores against naive sums, the program from lists to a saved model, resumed and interrupted runs."""

import json
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
from safetensors.torch import load_file

from structperc.analysis.explanation import explain
from structperc.analysis.nbest import nbest_scores
from structperc.chain import KBest, kbest, path_score
from structperc.cli.main import main
from structperc.criteria import CRFLoss, HingeLoss, LocalAndNonlocal, MarginLoss
from structperc.data.tag_schemes import spans
from structperc.datamodules.sources import Synthetic
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics import Evaluation
from structperc.nonlocal_features import ConjunctionConsistency, PhraseConsistency
from structperc.optim import Perceptron
from structperc.reranking import FirstScore, LocalFeatures, LocalSum
from structperc.reranking.bayes_point import BayesPoint
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.reranker import Reranker
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from structperc.training.report import evaluate
from structperc.training.reranking import rerank
from tests.nested import assert_same
from tests.tiny import without_names
from tests.zygote import printing

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
        "jackknife": JackKnife(folds=3, epochs=2, cache=str(cache)),
        "correct": "gold",
        **options,
    }
    return Reranker(scorer=local(), **parts)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("candidates")


@pytest.fixture
def data():
    return Synthetic(unit="document", train=7, dev=3, test=2, batch_size=2)


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
    for order in ([0, 1, 2], [3, 4], [5, 6]):
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


def test_fewer_labellings_than_candidates(cache, data):
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


def test_lists_with_missing_candidates_train(cache):
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
    made = make_reranker(cache, search=KBest(40))
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


def test_training_is_the_margin_rule_on_the_lists(cache):
    data = Synthetic(unit="document", train=7, dev=1, test=1, batch_size=1)
    made = make_reranker(cache, criterion=MarginLoss(C=3))
    made.train_first(data, **TRAINER)
    data.encode(made.encode, "fit")
    wanted, updates = naive_margin(made, data, 3, 3)
    assert updates
    fit(made, data, 3, limit_val_batches=0)
    found = torch.cat([made.scorer.weight, *(f.weight for f in made.nonlocal_features)]).detach().double()
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)


@each_local
def test_only_the_second_model_learns(cache, data, local):
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


def test_parameters_that_learn_come_first(cache, data):
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
        fit(made, Synthetic(unit="document", train=6, dev=3, test=2), 1)


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


def test_a_tagger_is_no_reranker(reranker, tmp_path):
    reranker.first.save(tmp_path / "model")
    assert type(Tagger.load(tmp_path / "model")) is Tagger
    with pytest.raises(InputError, match=r"Tagger.*Reranker"):
        Reranker.load(tmp_path / "model")


# -- the program ----------------------------------------------------------------------------------------------


class Runs:
    """`rerank` on a tiny embedded corpus; runs and candidate lists lie under `root`."""

    def __init__(self, root, candidates=None):
        self.root, self.candidates = root, candidates or root / "candidates"

    def __call__(self, *options, number=1, command=()):
        given = [
            *command,
            *("-c", str(CONFIGS / f"reranking{number}.yaml")),
            *("--data.train=12", "--data.dev=6", "--data.test=6"),
            *("--model.jackknife.folds=2", "--model.jackknife.epochs=1"),
            f"--model.jackknife.cache={self.candidates}",
            f"--trainer.default_root_dir={self.root / str(number)}",
            *("--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"),
            *("--trainer.accelerator=cpu", *options),
        ]
        rerank(given)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One finished run of two epochs of each kind."""
    made = Runs(tmp_path_factory.mktemp("reranking"))
    for number in (1, 2):
        made("--trainer.max_epochs=2", number=number)
    return made


def test_both_kinds_share_lists(runs, trainings):
    assert len(list(runs.candidates.iterdir())) == 1
    runs("--trainer.max_epochs=1", number=2)
    assert not trainings


@pytest.mark.parametrize("number", [1, 2])
def test_a_run_leaves_a_model_and_results(runs, number):
    run = runs.root / str(number) / "1"
    results = json.loads((run / "results.json").read_text())
    assert {"dev", "test", "epochs", "seconds"} <= results.keys()
    assert results["seconds_by_part"].keys() == {"folds", "first model", "second model"}
    assert results["seconds"] == pytest.approx(sum(results["seconds_by_part"].values()))
    data = Synthetic(unit="document", train=12, dev=6, test=6)
    model = Tagger.load(run / "model")
    for split in ("dev", "test"):
        evaluation, corpus = Evaluation(model.labels), data.corpus(split)
        for batch in model.batches(corpus, data.eval_batch_size):  # which of equal candidates are listed depends on it
            evaluation.update(model.decode(batch), batch.gold, batch.lengths, batch.sentences)
        assert evaluation.compute() == pytest.approx(results[split])


def test_seconds_of_each_part(runs, capsys):
    runs("--trainer.max_epochs=1")
    printed = capsys.readouterr().out
    assert "seconds of training (folds " in printed
    assert "first model" in printed
    assert "second model" in printed


def last(run):
    return torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)


@pytest.mark.parametrize("number", [1, 2])
def test_two_epochs_equal_one_resumed_bit_for_bit(runs, tmp_path, number):
    whole, resumed = Runs(tmp_path / "whole", runs.candidates), Runs(tmp_path / "resumed", runs.candidates)
    each = "--checkpoint.monitor=null"  # every epoch is kept, not only a better one
    whole("--trainer.max_epochs=2", each, number=number)
    resumed("--trainer.max_epochs=1", each, number=number)
    resumed("--trainer.max_epochs=2", each, "--ckpt_path=last", number=number)
    a, b = (last(made.root / str(number) / "1") for made in (whole, resumed))
    assert (a["epoch"], a["global_step"]) == (b["epoch"], b["global_step"]) == (1, 24)
    assert "first.scorer.node" in a["state_dict"]
    assert_same(a["state_dict"], b["state_dict"])
    assert_same(a["optimizer_states"], b["optimizer_states"])
    models = [load_file(made.root / str(number) / "1" / "model" / "model.safetensors") for made in (whole, resumed)]
    assert_same(*models)


def test_saved_averages_of_the_best_checkpoint(runs):
    for number in (1, 2):
        run = runs.root / str(number) / "1"
        best = torch.load(run / "checkpoints" / "best.ckpt", weights_only=True)
        saved = load_file(run / "model" / "model.safetensors")
        (state,) = best["optimizer_states"]
        (group,) = state["param_groups"]
        names = [name for name in best["state_dict"] if not name.startswith("first.")]
        assert len(names) == len(group["params"])
        for key, name in zip(group["params"], names, strict=True):
            raw, kept = best["state_dict"][name], state["state"].get(key)
            average = raw if kept is None else (raw.double() - kept["sums"] / group["steps"]).float()
            assert torch.equal(saved[name], average), name
        for name in best["state_dict"].keys() - names:
            assert torch.equal(saved[name], best["state_dict"][name])


def test_saved_configuration_uses_the_same_lists(runs, trainings):
    before = len(list((runs.root / "2").iterdir()))
    rerank(["-c", str(runs.root / "2" / "1" / "logs" / "version_0" / "config.yaml")])
    assert len(list((runs.root / "2").iterdir())) == before + 1
    assert not trainings


def test_no_resuming_with_other_lists(runs):
    with pytest.raises(InputError, match="candidate lists"):
        runs("--trainer.max_epochs=3", "--ckpt_path=last", "--model.jackknife.seed=2")


def test_scores_of_other_numbers_of_candidates(runs, capsys):
    """n' is varied without training."""
    runs("--ckpt_path=best", command=["validate"])
    score = capsys.readouterr().out.split("FB1:")[1].split()[0]
    newest = sorted((runs.root / "1").iterdir(), key=lambda p: int(p.name))[-1]
    results = json.loads((newest / "results.json").read_text())
    assert score == f"{100 * results['dev']['score']:.2f}"
    runs("--ckpt_path=best", "--model.decoder.k=1", command=["test"])
    assert "FB1:" in capsys.readouterr().out


def test_a_new_process_tags_with_both_models(runs, zygote, tmp_path):
    corpus = Synthetic(unit="document", train=12, dev=6, test=6).corpus("test")
    model = runs.root / "2" / "1" / "model"
    tagger = Tagger.load(model)
    roles = tagger.features.columns
    lines, number = [], 0
    for a, b in pairwise(corpus.starts.tolist()):
        lines.append("-DOCSTART- " + "x " * (len(roles) - 1) + "\n")
        for t in range(a, b):
            new = t == int(corpus.sentences[number])
            number += new
            lines.append("\n" * new + " ".join(corpus.columns[role][t] for role in roles))
        lines.append("")
    (tmp_path / "text.txt").write_text("\n".join(lines))
    command, (log, out) = ["tag", str(model), str(tmp_path / "text.txt")], (tmp_path / "log", tmp_path / "out")
    assert zygote(log, printing, out, main, command).status == 0, log.read_text()
    printed = without_names(out.read_text())
    tokens = [line.split() for line in printed.splitlines() if line and "DOCSTART" not in line]
    assert [token[0] for token in tokens] == corpus.columns["word"]
    wanted = [label for sentence in tagger.label(corpus) for label in sentence]
    assert [token[-1] for token in tokens] == wanted
    assert set(wanted) > {"O"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data.unit=sentence"], "data.unit: "),
        (["--model.jackknife.folds=1"], "folds "),
        (["--model.jackknife.folds=13"], "has 12 documents"),
        (["--model.search.k=1"], "search.k is 1"),
        (["--model.scorer.unit=0"], "unit "),
        (["--model.jackknife.epoch=1"], "epoch"),
    ],
)
def test_mistakes_are_one_line(runs, options, message):
    with pytest.raises(InputError) as error:
        runs(*options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_interrupted_run_continues(tmp_path, trainings):
    made, trainings.stop_before = Runs(tmp_path), 2
    with pytest.raises(KeyboardInterrupt):
        made("--trainer.max_epochs=1")
    assert len(trainings) == 2
    trainings.stop_before = None
    made("--trainer.max_epochs=1")
    assert len(trainings) == 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_same_lists_and_choices_on_cuda(tmp_path, data):
    found = []
    for accelerator in ("cpu", "cuda"):
        made = make_reranker(tmp_path / accelerator, LOCAL["local features"])
        made.train_first(data, accelerator=accelerator, enable_progress_bar=False)
        fit(made, data, 1, accelerator=accelerator)
        found.append(made.cpu().label(data.corpus("dev")))
    assert found[0] == found[1]


def test_it_is_a_command_of_the_program(tmp_path, capsys):
    options = ["-c", str(CONFIGS / "reranking1.yaml"), f"--trainer.default_root_dir={tmp_path}", "--model.search.k=1"]
    assert main(["rerank", *options]) == 2
    assert "model.search.k is 1" in capsys.readouterr().err
