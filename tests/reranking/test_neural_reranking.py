"""Re-rankers of a neural first model: folds with words of their own, lists without dropout, the cache, saved models."""

from contextlib import contextmanager
from functools import partial

import pytest
import torch

from structperc.chain import KBest, path_score
from structperc.criteria import CRFLoss, MarginLoss
from structperc.encoders import BiLSTM, CharCNN, Transformer, WordEmbedding
from structperc.encoders.pretrained import load_pretrained
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import LexiconShapes, PhraseConsistency, QuotedEntity, StartBigrams, WholeEntity
from structperc.optim import Perceptron
from structperc.reranking import Boosting, FirstScore, LocalFeatures, jackknife
from structperc.reranking.bayes_point import seed_all
from structperc.reranking.candidate_lists import TENSORS
from structperc.reranking.global_reranker import GlobalReranker
from structperc.reranking.jackknife import JackKnife, TrainingPart, fold_numbers
from structperc.reranking.reranker import Reranker
from structperc.scorers import Neural, SparseLinear
from structperc.taggers.tagger import Tagger
from tests.checkpoints import assert_same
from tests.encoders.tiny_models import save_bert
from tests.rerankers import QUIET, Text
from tests.tiny import fit

FOLDS, N = 2, 5

ADAM = partial(torch.optim.Adam, lr=0.02)


def bilstm(inputs=None, **options):
    inputs = inputs or [WordEmbedding(6, cutoff=1, word_dropout=0.2), CharCNN(4, characters=3, dropout=0.2)]
    return BiLSTM(inputs, **{"hidden": 6, "dropout": 0.5, **options})


def make_first(encoder=None, features=None, criterion=None, optimizer=ADAM, **options):
    """A BiLSTM-CRF with much dropout, quick to train."""
    return Tagger(features, Neural(encoder or bilstm()), criterion or CRFLoss(), KBest(1), optimizer, **options)


def templates():
    return FeatureExtractor([{"of": ["w"], "at": [-1, 0]}, "bias"], progress=False)


def make_plan(cache, **options):
    return JackKnife(**{"folds": FOLDS, "epochs": 2, "cache": str(cache), **options})


def make_ranked(cache, ranker, **options):
    parts = {"first": make_first(), "jackknife": make_plan(cache), "min_sequences": 1, **options}
    features = [WholeEntity(), LexiconShapes(typed=False), StartBigrams(), QuotedEntity()]
    return GlobalReranker(ranker=ranker, search=KBest(N), nonlocal_features=features, **parts)


def compared(cache, scorer, **options):
    parts = {"first": make_first(), "jackknife": make_plan(cache), "optimizer": Perceptron, **options}
    return Reranker(
        scorer=scorer, criterion=MarginLoss(C=1), search=KBest(N), nonlocal_features=[PhraseConsistency()], **parts
    )


@pytest.fixture(scope="module")
def data():
    """Documents of two sentences each."""
    return Text(unit="document")


@contextmanager
def watched():
    """(fold model, what it lists, its lists), as they happen."""
    seen = []
    list_candidates = jackknife.list_candidates

    def watching(tagger, held, n):
        lists = list_candidates(tagger, held, n)
        seen.append((tagger, held, lists))
        return lists

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jackknife, "list_candidates", watching)
        yield seen


@pytest.fixture(scope="module")
def made(cache, data):
    """First models, and what `watched` has seen of them."""
    with watched() as seen:
        return make_plan(cache)(make_first(), data, N, **QUIET), seen


def same_models(a, b):
    """Whether lists and final first models are the same bits."""
    lists = all(torch.equal(getattr(a.lists, name), getattr(b.lists, name)) for name in TENSORS)
    states = a.tagger.state_dict(), b.tagger.state_dict()
    return lists and all(torch.equal(states[0][name], states[1][name]) for name in states[0].keys() | states[1].keys())


# -- first models ---------------------------------------------------------------------------------------------


def by_hand(seen, labels, data, fold, **options):
    """A first model made and trained by a plain trainer, after the seed of its fold."""
    seed_all(1, fold)
    first = make_first()
    first.features.fit(seen)
    first.scorer.build_vocabulary(seen)
    first.allocate(labels)
    fit(first, TrainingPart.from_corpus(seen, data), 2, **options)
    return first


def test_first_models_of_a_plain_trainer(made, data):
    models, seen = made
    corpus = data.corpus("train")
    fold_of = fold_numbers(corpus.documents, FOLDS, 1)
    for fold, (tagger, held, _) in enumerate(seen):
        own = by_hand(corpus.subset(fold_of != fold), models.tagger.labels, data, fold)
        assert_same(tagger.state_dict(), own.state_dict())
        assert held.columns["word"] == corpus.subset(fold_of == fold).columns["word"]
    assert_same(models.tagger.state_dict(), by_hand(corpus, models.tagger.labels, data, FOLDS).state_dict())


def test_long_gradients_are_clipped(made, tmp_path, data):
    models = make_plan(tmp_path, gradient_clip_val=0.05)(make_first(), data, N, **QUIET)
    own = by_hand(data.corpus("train"), models.tagger.labels, data, FOLDS, gradient_clip_val=0.05)
    assert_same(models.tagger.state_dict(), own.state_dict())
    assert not same_models(models, made[0])


def test_vocabulary_of_folds(tmp_path):
    """Every document has a word of its own, with a character of its own."""
    data = Text(unit="document")
    corpus = data.corpus("train")
    words, own = list(corpus.columns["word"]), [f"only{chr(0x4E00 + row)}" for row in range(len(corpus))]
    for start, word in zip(corpus.starts[:-1], own, strict=True):
        words[start] = word
    data._corpora["train"] = corpus.replace_column("word", words)
    with watched() as seen:
        models = make_plan(tmp_path)(make_first(), data, N, **QUIET)

    def known(tagger):
        embedding, characters = tagger.scorer.encoder.inputs
        assert len(embedding.table) == len(embedding.known)
        assert len(characters.table) == len(characters.known)
        assert [word in embedding.known for word in own] == [word[-1] in characters.known for word in own]
        return {word for word in own if word in embedding.known}

    held = [{word for word in own if word in part.columns["word"]} for _, part, _ in seen]
    assert [known(tagger) for tagger, _, _ in seen] == [set(own) - of_part for of_part in held]
    assert held[0]
    assert held[0] | held[1] == set(own)
    assert known(models.tagger) == set(own)


def test_lists_are_the_k_best_without_dropout(made):
    for tagger, held, lists in made[1]:
        rows, whole = tagger.encode(held), list(range(len(held)))
        with torch.no_grad():
            again = KBest(N)(tagger.eval()(rows[whole]))
            listed = lists.batch(torch.arange(len(held)))
            torch.testing.assert_close(listed.candidates.scores, again.scores)
            for row in range(len(held)):
                lattice, length = tagger(rows[[row]]), int(held.lengths[row])
                gold, paths = rows[[row]].gold, listed.candidates.labels[row : row + 1, :, :length]
                torch.testing.assert_close(listed.gold_scores[row : row + 1], path_score(lattice, gold))
                torch.testing.assert_close(listed.candidates.scores[row : row + 1], path_score(lattice, paths))
            dropped = path_score(tagger.train()(rows[whole]), listed.candidates.labels)
        assert not torch.allclose(dropped, listed.candidates.scores, atol=0.01)
        tagger.eval()
    assert not any(part.training for part in made[0].tagger.modules())


def test_a_transformer_as_first_model(tmp_path, data):
    """Every fold starts from the folder, whose files are part of the name in the cache."""
    folder, plan = save_bert(tmp_path / "bert"), make_plan(tmp_path / "cache", epochs=1)
    firsts = [make_first(Transformer(str(folder), frozen=frozen)) for frozen in (True, False)]
    names = {plan.fingerprint(first, data, N) for first in firsts}
    frozen = plan(firsts[0], data, N, **QUIET).tagger.scorer.encoder.network
    assert_same(frozen.state_dict(), load_pretrained(str(folder))[0].state_dict())
    reranker = make_ranked(tmp_path, Boosting(rounds=2), first=firsts[1], jackknife=plan)
    reranker.train_first(data, **QUIET)
    fit(reranker, data, 1)
    reranker.finalize()
    reranker.save(tmp_path / "model")
    corpus = data.corpus("test")
    assert Tagger.load(tmp_path / "model").kbest(corpus, N) == reranker.kbest(corpus, N)
    save_bert(folder, num_hidden_layers=1)
    assert len(names | {plan.fingerprint(first, data, N) for first in firsts}) == 4


# -- random state and interruptions ---------------------------------------------------------------------------


def test_interrupted_run_ends_in_the_same_bits(made, tmp_path, data, trainings):
    trainings.stop_before = 1
    with pytest.raises(KeyboardInterrupt):
        make_plan(tmp_path)(make_first(), data, N, **QUIET)
    assert len(trainings) == 1
    trainings.stop_before = None
    assert same_models(make_plan(tmp_path)(make_first(), data, N, **QUIET), made[0])


# -- the cache ------------------------------------------------------------------------------------------------


def test_trained_model_uses_the_same_lists(made, cache, data, trainings):
    """The folder in the cache is that of the configuration, whatever words the model has learned."""
    reranker = make_ranked(cache, Boosting(rounds=2))
    for _ in range(2):
        reranker.train_first(data, **QUIET)
        assert reranker.fingerprint == made[0].fingerprint
        assert torch.equal(reranker.lists.scores, made[0].lists.scores)
        assert reranker.first.scorer.encoder.inputs[0].known.known
    assert not trainings


def with_words(**options):
    return make_first(bilstm([WordEmbedding(**{"width": 6, "cutoff": 1, **options})]))


CHANGES = {
    "cutoff": partial(with_words, cutoff=2),
    "dropout": lambda: make_first(bilstm(dropout=0.4)),
    "transitions": lambda: Tagger(None, Neural(bilstm(), transitions=False), CRFLoss(), KBest(1), ADAM),
    "learning rate": lambda: make_first(optimizer=partial(torch.optim.Adam, lr=0.01)),
    "templates": lambda: make_first(features=templates()),
}


def test_folders_of_first_models(tmp_path, data):
    plan = make_plan(tmp_path)
    names = {plan.fingerprint(first(), data, N) for first in [make_first, *CHANGES.values()]}
    names |= {make_plan(tmp_path, gradient_clip_val=c).fingerprint(make_first(), data, N) for c in (1, 2)}
    assert len(names) == len(CHANGES) + 3
    assert plan.fingerprint(make_first(), data, N) in names


def test_word_vectors_in_the_fingerprint(tmp_path, data):
    file, plan, names = tmp_path / "vectors.txt", make_plan(tmp_path), []
    for value in (0.5, 0.25, 0.5):
        file.write_text("".join(f"{word} {value} 1\n" for word in ("Anna", "Rome", "met")))
        names.append(plan.fingerprint(with_words(width=2, path=str(file)), data, N))
    assert names[0] == names[2] != names[1]


# -- saved re-rankers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["global", "local"])
def test_decoding_without_dropout(cache, data, kind):
    if kind == "global":
        reranker = make_ranked(cache, Boosting(rounds=6))
    else:
        reranker = compared(cache, LocalFeatures(SparseLinear()), first=make_first(features=templates()))
    reranker.train_first(data, **QUIET)
    fit(reranker, data, 1)
    corpus = data.corpus("dev")
    labels, found = reranker.label(corpus), reranker.kbest(corpus, N)
    batch = reranker.encode(corpus)[[0, 1, 2]]
    reranker.train()
    assert reranker.label(corpus) == labels
    assert reranker.kbest(corpus, N) == found
    with torch.no_grad():
        assert not torch.equal(reranker.first(batch).unary, reranker.first(batch).unary)
        reranker.eval()
        assert torch.equal(reranker.first(batch).unary, reranker.first(batch).unary)


# -- mistakes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first": make_first(init_from="runs/other/1/model")}, "model.first.init_from: .* remove it"),
        ({"scorer": LocalFeatures(SparseLinear())}, "model.scorer: LocalFeatures"),
    ],
)
def test_invalid_parts(tmp_path, options, message):
    with pytest.raises(InputError, match=f"^{message}"):
        compared(tmp_path, **{"scorer": FirstScore(), **options})


def test_invalid_encoder_input(tmp_path, data, trainings):
    for first, message in [
        (with_words(column="pos"), "WordEmbedding reads the missing column 'pos'"),
        (with_words(path=str(tmp_path / "no.txt")), "no.txt: no such file of word vectors"),
    ]:
        with pytest.raises(InputError, match=message):
            make_plan(tmp_path / "cache")(first, data, N, **QUIET)
    assert not (tmp_path / "cache").exists()
