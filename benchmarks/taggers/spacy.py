"""spaCy from scratch: the components, options and stopping rule of `spacy init config`; sentences are documents."""

from collections.abc import Iterator

import spacy
from spacy.cli.init_config import init_config
from spacy.tokens import Doc, DocBin, Span
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_spacy

from benchmarks.taggers.system_run import Sentences, Tag, Task, labels_of_spans, run, spans


def documents(task: Task, text: Sentences) -> Iterator[Doc]:
    vocabulary = spacy.blank("en").vocab
    for sentence in text:
        if task.has_segments:
            doc = Doc(vocabulary, words=sentence.words)
            doc.ents = [Span(doc, *segment) for segment in spans(sentence.labels)]
        else:
            doc = Doc(vocabulary, words=sentence.words, tags=sentence.labels)
        yield doc


def train(task: Task) -> Tag:
    config = init_config(
        lang="en", pipeline=["ner" if task.has_segments else "tagger"], optimize="efficiency", gpu=False
    )
    for name, text in (("train", task.train), ("dev", task.dev)):
        path = task.model.parent / f"{name}.spacy"
        DocBin(docs=documents(task, text)).to_disk(path)
        config["paths"][name] = str(path)
    config["system"]["seed"] = config["training"]["seed"] = task.seed
    training = task.model.parent / "training"
    training.mkdir(exist_ok=True)
    train_spacy(init_nlp(config), training)
    nlp = spacy.load(training / "model-best")
    nlp.to_disk(task.model)

    def tag(text: Sentences) -> list[list[str]]:
        docs = nlp.pipe(Doc(nlp.vocab, words=sentence.words) for sentence in text)
        if not task.has_segments:
            return [[token.tag_ for token in doc] for doc in docs]
        return [labels_of_spans([(e.start, e.end, e.label_) for e in doc.ents], len(doc)) for doc in docs]

    return tag


if __name__ == "__main__":
    run(["spacy", "thinc"], train)
