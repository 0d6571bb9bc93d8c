"""flair's SequenceTagger as its tutorials train it: a fine-tuned transformer, or a BiLSTM-CRF over GloVe vectors.

The tutorial's fine-tuning rate of 5e-6 is for a large encoder; this is the default of `fine_tune`, 5e-5, without the
sentences around each sentence. The BiLSTM-CRF has stochastic gradient descent at 0.1, at most 150 epochs.
"""

import argparse
from pathlib import Path

import flair
import numpy as np
import torch
from flair.data import Corpus, Sentence
from flair.datasets import FlairDatapointDataset
from flair.embeddings import TokenEmbeddings, TransformerWordEmbeddings, WordEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer
from gensim.models import KeyedVectors

from benchmarks.taggers.system_run import Sentences, Tag, Task, labels_of_spans, run, spans


def labelled(task: Task, text: Sentences) -> FlairDatapointDataset:
    found = []
    for own in text:
        sentence = Sentence(own.words)
        for start, end, name in spans(own.labels) if task.has_segments else ():
            sentence[start:end].add_label("label", name)
        if not task.has_segments:
            for token, label in zip(sentence, own.labels, strict=True):
                token.add_label("label", label)
        found.append(sentence)
    return FlairDatapointDataset(found)


def word_vectors(path: Path, folder: Path) -> TokenEmbeddings:
    """Return the vectors of PATH.npy for the words of PATH.words.txt."""
    vectors = np.load(f"{path}.npy")
    found = KeyedVectors(vectors.shape[1])
    found.add_vectors(Path(f"{path}.words.txt").read_text(encoding="utf-8").split("\n")[: len(vectors)], vectors)
    found.save(str(folder / "vectors.gensim"))
    return WordEmbeddings(str(folder / "vectors.gensim"))


def train(task: Task) -> Tag:
    flair.device = torch.device("cpu")
    flair.set_seed(task.seed)
    torch.set_num_threads(1)
    dev = labelled(task, task.dev)
    corpus = Corpus(labelled(task, task.train), dev, name="own", sample_missing_splits=False)
    labels = corpus.make_label_dictionary("label", add_unk=False)
    options = {"hidden_size": 256, "tag_dictionary": labels, "tag_type": "label"}
    folder = task.model.parent / "training"
    if task.options.encoder:
        vectors = TransformerWordEmbeddings(task.options.encoder, layers="-1", subtoken_pooling="first", fine_tune=True)
        tagger = SequenceTagger(vectors, **options, use_crf=False, use_rnn=False, reproject_embeddings=False)
        ModelTrainer(tagger, corpus).fine_tune(folder, learning_rate=5e-5, mini_batch_size=4, max_epochs=10)
    else:
        tagger = SequenceTagger(word_vectors(task.options.vectors, task.model), **options)
        ModelTrainer(tagger, corpus).train(folder, learning_rate=0.1, mini_batch_size=32, max_epochs=150)
    tagger.save(task.model / "model.pt")

    def tag(text: Sentences) -> list[list[str]]:
        found = [Sentence(sentence.words) for sentence in text]
        tagger.predict(found, mini_batch_size=32)
        if not task.has_segments:
            return [[token.get_label("label").value for token in sentence] for sentence in found]
        return [
            labels_of_spans([(s[0].idx - 1, s[-1].idx, s.tag) for s in sentence.get_spans("label")], len(sentence))
            for sentence in found
        ]

    return tag


def add_options(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--encoder", help="folder of a pretrained encoder, to fine-tune")
    which.add_argument("--vectors", type=Path, help="PATH of PATH.npy and PATH.words.txt, for the BiLSTM-CRF")


if __name__ == "__main__":
    run(["flair", "transformers", "torch"], train, add_options)
