"""Columns, running text or JSON lines: the corpus that a saved tagger labels, and the texts its labels are about."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.json_lines import json_rows, strings
from structperc.data.reading import Reading
from structperc.data.recognition import Form
from structperc.data.text import lines_of
from structperc.errors import InputError
from structperc.inspection.reading import AS_THE_MODEL, read_text
from structperc.light import Labeller
from structperc.text import TokenizedText, conll_tokens, joined, placed, rule_sentences, tokenized
from structperc.text.sentences import Split
from structperc.text.tokenizer import Cut

TEXT, TOKENS = "text", "tokens"  # fields of JSON lines


class TagInput(NamedTuple):
    """What is to be labelled: a corpus, and its tokens in their order as texts."""

    form: Form
    corpus: Corpus
    texts: list[TokenizedText]
    records: list[dict[str, Any]]  # the object of each text; empty unless the form is jsonl
    lines: list[str]  # of a file of columns


def read_input(
    tagger: Labeller,
    text: str,
    name: str,
    form: Form,
    reading: Reading = AS_THE_MODEL,
    tokenizer: Cut = conll_tokens,
    sentences: Split = rule_sentences,
) -> TagInput:
    """Return what the file `name`, which holds `text`, gives a tagger to label.

    A file of running text is one document. So is each JSON line; its field "tokens" is a sentence, with a field for
    each further column that the tagger reads, or its field "text" is cut into tokens and sentences; where it has both,
    these are the tokens of this text. Raises InputError with the place of what cannot be read.
    """
    if form == "columns":
        lines = lines_of(text)
        corpus = read_text(tagger, lines, name, reading)
        return TagInput(form, corpus, _documents(corpus), [], lines)
    if reading.columns:
        raise InputError(f"{name}: --columns is for files of columns; leave it out, or set --input columns")
    unit = reading.unit or tagger.unit
    if form == "text":
        tagger.check_words_alone()
        texts = [tokenized(text, tokenizer, sentences)]
        if not texts[0].tokens:
            raise InputError(f"{name}: there are no tokens in this file")
        return TagInput(form, _corpus([({}, one) for one in texts], unit, name), texts, [], [])
    rows = json_rows(lines_of(text), name)
    read = [_record(tagger, record, place, tokenizer, sentences) for place, record in rows]
    return TagInput(form, _corpus(read, unit, name), [one for _, one in read], [record for _, record in rows], [])


def _record(
    tagger: Labeller, record: dict[str, Any], place: str, tokenizer: Cut, sentences: Split
) -> tuple[dict[str, list[str]], TokenizedText]:
    """Further columns and the text of an object."""
    text = record.get(TEXT)
    if text is not None and not isinstance(text, str):
        raise InputError(f"{place}: field {TEXT!r} must be a string, not {type(text).__name__}")
    if TOKENS not in record:
        if text is None:
            raise InputError(f"{place}: there is neither a field {TOKENS!r} nor {TEXT!r} among {list(record)}")
        tagger.check_words_alone()
        return {}, tokenized(text, tokenizer, sentences)
    words = strings(record, TOKENS, place)
    if "" in words:
        raise InputError(f"{place}: field {TOKENS!r}[{words.index('')}] is empty; leave it out")
    columns = {role: strings(record, role, place) for role in tagger.features.columns if role != "word"}
    for role, values in columns.items():
        if len(values) != len(words):
            raise InputError(f"{place}: field {role!r} has {len(values)} strings for {len(words)} tokens")
    return columns, joined([words]) if text is None else placed([words], text, place)


def _corpus(texts: list[tuple[dict[str, list[str]], TokenizedText]], unit: str, name: str) -> Corpus:
    """Texts, each with its further columns, as one corpus of as many documents."""
    rows, documents = [], []
    for number, (columns, text) in enumerate(texts):
        words = text.words
        for first, last in pairwise(text.sentences):
            cut = {role: values[first:last] for role, values in columns.items()}
            rows.append({"word": words[first:last], **cut})
            documents.append(number)
    return Corpus.from_sentences(rows, documents, unit, name)


def _documents(corpus: Corpus) -> list[TokenizedText]:
    """The documents of a corpus as texts, with a space between words and a line for each sentence."""
    first = corpus.starts[:-1][np.diff(corpus.documents, prepend=-1) != 0]
    sentences = corpus.sentences_of(corpus.columns["word"])
    at = np.searchsorted(corpus.sentences, [*first.tolist(), corpus.tokens]).tolist()
    return [joined(sentences[a:b]) for a, b in pairwise(at)]
