"""Labels of a first model as features of a second one: who labels what, training, and saved models."""

import numpy as np
import pytest
import pytorch_lightning as pl

from structperc.builder import Builder
from structperc.chain import KBest
from structperc.criteria import MarginLoss
from structperc.data.corpus import Corpus
from structperc.datamodules.sources import Synthetic
from structperc.errors import InputError
from structperc.features import EntityMajority, FeatureExtractor, TokenMajority
from structperc.features.documents import restore
from structperc.nonlocal_features import PhraseConsistency
from structperc.optim.base import training_protocol
from structperc.reranking import FirstLabels, JackKnife
from structperc.reranking.first_labels import TRAINING
from structperc.reranking.jackknife import TrainingPart, fold_numbers
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from tests.tiny import fit

FOLDS, EPOCHS = 2, 2
SIZES = {"train": 16, "dev": 6, "test": 2}
MAJORITIES = {"token": TokenMajority("first"), "entity": EntityMajority("first", "corpus")}


def make_tagger(features, **options):
    return Tagger(features, SparseLinear(transitions=True), MarginLoss(C=5), KBest(2), **options)


def make_first(**options):
    return make_tagger(FeatureExtractor([{"of": ["w"], "at": [-1, 0]}], cutoff=1, progress=False), **options)


def make_labels(folder, **options):
    plan = JackKnife(folds=FOLDS, epochs=EPOCHS, cache=str(folder / "cache"))
    return FirstLabels(make_first(), plan, batch_size=2, **options)


@pytest.fixture(scope="module")
def data():
    return Synthetic(**SIZES, batch_size=4, scheme="BILOU")


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """The folder whose cache has the first models of `trained`."""
    return tmp_path_factory.mktemp("stages")


@pytest.fixture(scope="module")
def trained(data, stages):
    """A model after its training."""
    own = {"first": make_labels(stages), **MAJORITIES}
    templates = [{"of": ["w", "shape", "first", "token", "entity"], "at": [0]}]
    second = make_tagger(FeatureExtractor(templates, documents=own, cutoff=1, progress=False))
    fit(second, data, 2)
    return second.eval()


def labels_of(attribute, corpus):
    found = attribute.transform(corpus, None)
    return [found.distinct[number] for number in found.numbers]


def flat(sentences):
    return [label for sentence in sentences for label in sentence]


def test_documents_labelled_by_models_without_them(trained, data):
    corpus, first = data.corpus("train"), trained.features.documents["first"]
    found = np.array(labels_of(first, corpus), object)
    fold_of = fold_numbers(corpus.documents, FOLDS, 1)
    held = fold_of == 1
    part = TrainingPart(corpus.subset(~held), scheme="BILOU", batch_size=2)
    alone = make_first()
    alone.features.fit(part.corpus("train"))
    alone.allocate(data.label_set())
    trainer = fit(alone, part, EPOCHS)
    training_protocol(trainer.optimizers[0]).use_evaluation_weights()  # averages, where they are kept
    tokens = np.repeat(held, corpus.lengths)
    assert found[tokens].tolist() == flat(alone.label(corpus.subset(held)))
    assert found[~tokens].tolist() != flat(alone.label(corpus.subset(~held)))


def test_other_text_labelled_by_the_final_model(trained, data):
    first = trained.features.documents["first"]
    dev, train = data.corpus("dev"), data.corpus("train")
    assert labels_of(first, dev) == flat(first.first.label(dev))
    again = train.replace_column("label", train.columns["label"])  # the same words, but no longer the training data
    assert labels_of(first, again) == flat(first.first.label(train)) != labels_of(first, train)


def test_templates_read_the_labels(trained):
    names = trained.features.index.names("node")
    assert {"token[0]=PER", "entity[0]=LOC"} <= set(names)
    assert any(name.startswith("first[0]=U-") for name in names)
    assert trained.features.columns == ["word"]


def test_saved_first_model(trained, data, tmp_path, monkeypatch):
    trained.save(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    again = Tagger.load("model")
    dev = data.corpus("dev")
    assert again.label(dev) == trained.label(dev)
    sentences = dev.sentences_of(dev.columns["word"])
    assert again.tag(sentences) == trained.tag(sentences)
    again.save("again")
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("model", "again"))
    assert one == other


def test_a_first_model_runs_no_foreign_code(trained):
    first = trained.features.documents["first"]
    learned = {**first.to_json()["state"], "scorer": {"class_path": "os.system", "init_args": {"command": "true"}}}
    with pytest.raises(InputError, match=r"here: .*os\.system"):
        FirstLabels().load_state(learned, first.arrays(), Builder(), "here")
    with pytest.raises(InputError, match="here: TokenMajority "):
        restore({**MAJORITIES["token"].to_json(), "state": learned}, {}, Builder(), "here")


def test_first_models_come_from_the_cache(trained, data, stages, monkeypatch):
    corpus = data.corpus("train")
    monkeypatch.setattr(pl.Trainer, "fit", None)
    after = make_labels(stages).fit(corpus)
    assert labels_of(after, corpus) == labels_of(trained.features.documents["first"], corpus)
    with pytest.raises(TypeError):  # another order of the training data
        make_labels(stages, seed=2).fit(corpus)


def second_from(folder, tmp_path):
    """A tagger of documents that starts from a saved two-stage model, with non-local features."""
    own = {"first": make_labels(tmp_path), **MAJORITIES}
    templates = [{"of": ["w", "shape", "first", "token", "entity"], "at": [0]}]
    features = FeatureExtractor(templates, documents=own, within="sentence", progress=False)
    return make_tagger(features, init_from=str(folder), nonlocal_features=[PhraseConsistency()])


@pytest.fixture(scope="module")
def start(trained, tmp_path_factory):
    """The folder of the model, as one whose neighbours are looked for in sentences."""
    folder = tmp_path_factory.mktemp("start")
    trained.features.within = "sentence"
    trained.save(folder / "model")
    trained.features.within = "sequence"
    return folder / "model"


def test_same_data_same_labels(trained, start, data, tmp_path, monkeypatch):
    """Sequences may be documents now; nothing is jack-knifed again, and other text has labels of the first model."""
    documents = Synthetic(**SIZES, batch_size=4, scheme="BILOU", unit="document")
    second = second_from(start, tmp_path)
    monkeypatch.setattr(JackKnife, "__call__", None)
    fit(second, documents, 1)
    first, known = second.features.documents["first"], trained.features.documents["first"]
    assert labels_of(first, documents.corpus("train")) == labels_of(known, data.corpus("train"))
    dev = documents.corpus("dev")
    assert labels_of(first, dev) == flat(known.first.label(data.corpus("dev")))
    second.save(tmp_path / "again")  # from which a third training can start
    third = second_from(tmp_path / "again", tmp_path)
    third.unit = "document"
    third.build_vocabulary(documents)


def test_first_labels_only_in_training(start, data):
    """Who labels the training data with a saved model gets the labels of its first model."""
    again = Tagger.load(start).features.documents["first"]
    corpus = data.corpus("train")
    assert labels_of(again, corpus) == flat(again.first.label(corpus))


@pytest.mark.parametrize("change", ["fewer", "word", "label", "boundary"])
def test_other_training_data_are_no_start(start, data, tmp_path, change):
    corpus = data.corpus("train")
    words, labels, sentences = list(corpus.columns["word"]), list(corpus.columns["label"]), corpus.sentences
    if change == "word":
        words[3] = "Otherwise"
    elif change == "label":
        labels[labels.index("O")] = "U-PER"
    elif change == "boundary":
        sentences = np.sort(np.append(sentences, 1))
    columns = {"word": words, "label": labels}
    other = Corpus.from_columns(columns, sentences, np.arange(len(sentences) - 1), name="other")
    if change == "fewer":
        other = corpus.subset(np.arange(len(corpus)) > 0)
    place = f"model.init_from: {start}: features.documents.first"
    with pytest.raises(InputError, match=f"^{place}: .*{corpus.tokens:,} tokens"):
        second_from(start, tmp_path).build_vocabulary(TrainingPart(other, scheme="BILOU"))


def test_models_without_first_labels(trained, data):
    """As those that were saved before these labels were kept."""
    first = trained.features.documents["first"]
    told, arrays = first.to_json(), first.arrays()
    learned = {name: value for name, value in told["state"].items() if name != TRAINING}
    kept = {name: array for name, array in arrays.items() if name != TRAINING}
    former = restore({**told, "state": learned}, kept, Builder(), "here")
    with pytest.raises(InputError, match="train it again"):
        former.resume_fit(data.corpus("train"))
    wrong = [{TRAINING: labels} for labels in (np.array([99], np.uint8), np.array([[0]], np.uint8), np.array([0.5]))]
    for one in ({}, *wrong):
        with pytest.raises(InputError, match=f"here: {TRAINING}"):
            restore(told, {**kept, **one}, Builder(), "here")


def test_invalid_training(data):
    words = Corpus.from_sentences([{"word": ["Bo"]}])
    for attribute, message in [(FirstLabels(), "set first"), (FirstLabels(make_first()), "missing gold labels")]:
        with pytest.raises(InputError, match=message):
            attribute.fit(words)
    with pytest.raises(InputError, match="the first model is not trained"):
        FirstLabels(make_first()).transform(words, None)
    with pytest.raises(InputError, match="nonlocal_features"):
        FirstLabels(make_first(nonlocal_features=[PhraseConsistency()]))
    with pytest.raises(InputError, match="batch_size"):
        FirstLabels(make_first(), batch_size=0)
