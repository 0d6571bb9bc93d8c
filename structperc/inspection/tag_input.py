"""Blocks of columns, running text or JSON lines: the corpora that a tagger labels, and the texts they are about."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from structperc.data.blocks import Block
from structperc.data.conll import conll_part, first_mark
from structperc.data.corpus import Corpus
from structperc.data.json_lines import json_rows, strings
from structperc.data.reading import DOCSTART
from structperc.errors import InputError
from structperc.inspection.reading import GOLD
from structperc.inspection.tag_plan import Cutting, Plan
from structperc.light import Labeller
from structperc.text import TokenizedText, joined, placed, tokenized

TEXT, TOKENS = "text", "tokens"  # fields of JSON lines


class TagInput(NamedTuple):
    """What is to be labelled: a corpus, and what else is known of its block."""

    plan: Plan
    block: Block
    corpus: Corpus
    own: list[TokenizedText] = []  # noqa: RUF012  # the texts that were cut, or came in tokens; none of columns
    records: list[dict[str, Any]] = []  # noqa: RUF012  # the object of each text; empty unless the form is jsonl

    @property
    def texts(self) -> list[TokenizedText]:
        """The tokens in their order as texts, one for each document."""
        return _documents(self.corpus) if self.plan.form == "columns" else self.own

    @property
    def opened(self) -> Sequence[int] | None:
        """The tokens before which a document is opened, for files of columns; None: by what the corpus has.

        What follows is not known, so all documents are, of which running text is one.
        """
        if self.plan.whole:
            return None
        if self.plan.form == "text":
            return [0] if self.block.first == 1 else []
        return self.corpus.starts[:-1][np.diff(self.corpus.documents, prepend=-1) != 0].tolist()


def read_block(tagger: Labeller, block: Block, plan: Plan) -> TagInput:
    """Return what a block of a file gives a tagger to label.

    A file of running text is one document. So is each JSON line; its field "tokens" is a sentence, with a field for
    each further column that the tagger reads, or its field "text" is cut into tokens and sentences; where it has both,
    these are the tokens of this text. Raises InputError with the place of what cannot be read.
    """
    if plan.form == "columns":
        return TagInput(plan, block, _columns(block, plan))
    if plan.form == "text":
        text = tokenized(block.text, plan.cutting.tokenizer, plan.cutting.split)
        return TagInput(plan, block, _corpus([({}, text)], plan), [text])
    rows = json_rows(block.lines, plan.name, block.first)
    read = [_record(tagger, record, place, plan.cutting) for place, record in rows]
    numbers = [int(place.rpartition(":")[2]) for place, _ in rows]
    lines = np.repeat(np.array(numbers, np.int64), [len(one.tokens) for _, one in read])
    corpus = replace(_corpus(read, plan), lines=lines)
    return TagInput(plan, block, corpus, [one for _, one in read], [record for _, record in rows])


def _columns(block: Block, plan: Plan) -> Corpus:
    lines = block.lines
    if plan.together and not plan.above.marked and (at := first_mark(lines)) is not None:
        place = f"{plan.name}:{block.first + at}"
        raise InputError(f"{place}: a document begins here, but the file does not begin with one; add {DOCSTART} there")
    roles = ["_" if role == GOLD else role for role in plan.columns]
    above = plan.above._replace(lines=block.first - 1)
    return conll_part(lines, roles, plan.name, plan.unit, above, plan.line_format)


def _record(
    tagger: Labeller, record: dict[str, Any], place: str, cutting: Cutting
) -> tuple[dict[str, list[str]], TokenizedText]:
    """Further columns and the text of an object."""
    text = record.get(TEXT)
    if text is None and TEXT in record and TOKENS not in record:
        raise InputError(f"{place}: field {TEXT!r} is null; write a string, or leave out the line")
    if text is not None and not isinstance(text, str):
        raise InputError(f"{place}: field {TEXT!r} must be a string, not {type(text).__name__}")
    if TOKENS not in record:
        if text is None:
            raise InputError(f"{place}: there is neither a field {TOKENS!r} nor {TEXT!r} among {list(record)}")
        tagger.check_words_alone()
        return {}, tokenized(text, cutting.tokenizer, cutting.split)
    words = strings(record, TOKENS, place)
    if "" in words:
        raise InputError(f"{place}: field {TOKENS!r}[{words.index('')}] is empty; leave it out")
    columns = {role: strings(record, role, place) for role in tagger.features.columns if role != "word"}
    for role, values in columns.items():
        if len(values) != len(words):
            raise InputError(f"{place}: field {role!r} has {len(values)} strings for {len(words)} tokens")
    return columns, joined([words]) if text is None else placed([words], text, place)


def _corpus(texts: list[tuple[dict[str, list[str]], TokenizedText]], plan: Plan) -> Corpus:
    """Texts, each with its further columns, as one corpus of as many documents."""
    rows, documents = [], []
    for number, (columns, text) in enumerate(texts):
        words = text.words
        for first, last in pairwise(text.sentences):
            cut = {role: values[first:last] for role, values in columns.items()}
            rows.append({"word": words[first:last], **cut})
            documents.append(number)
    return Corpus.from_sentences(rows, documents, plan.unit, plan.name)


def _documents(corpus: Corpus) -> list[TokenizedText]:
    """The documents of a corpus as texts, with a space between words and a line for each sentence."""
    first = corpus.starts[:-1][np.diff(corpus.documents, prepend=-1) != 0]
    sentences = corpus.sentences_of(corpus.columns["word"])
    at = np.searchsorted(corpus.sentences, [*first.tolist(), corpus.tokens]).tolist()
    return [joined(sentences[a:b]) for a, b in pairwise(at)]
