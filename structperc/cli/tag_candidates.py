"""What only a whole tagger shows of a file: the k best labellings, and the order in which tokens were decided."""

from collections.abc import Iterator, Sequence
from functools import partial

import torch

from structperc.analysis.tag_input import TagInput
from structperc.analysis.tag_output import Lines, column_lines
from structperc.cli.arguments import load_guided
from structperc.data.conll import header_line
from structperc.data.read_options import PREDICTED
from structperc.errors import InputError
from structperc.taggers.base import BaseTagger, flat_labels, inference_batch_size
from structperc.taggers.tagger import Tagger

TOGETHER = 2**16  # labellings


def candidates_of(model: str, trusted: Sequence[str], k: int) -> tuple[BaseTagger, Lines]:
    """Return a saved tagger, and what gives the lines of its k best. Raises InputError for one that has no lists."""
    tagger = BaseTagger.load(model, trusted=trusted)
    if not isinstance(tagger, Tagger):
        raise InputError(f"{model}: a {type(tagger).__name__} knows the best labelling alone; leave out -k")
    return tagger, partial(_candidate_lines, tagger, k)


def order_of(model: str, trusted: Sequence[str]) -> tuple[BaseTagger, Lines]:
    """Return a saved guided tagger, and what gives lines with the order of its decisions before the label."""
    tagger = load_guided(model, trusted)
    return tagger, partial(_ordered_lines, tagger)


@torch.no_grad()
def _ordered_lines(tagger: BaseTagger, given: TagInput) -> Iterator[str]:
    """Columns, with what the tagger says about its decisions before the label."""
    corpus = given.corpus
    parts = [tagger.predict_step(batch) for batch in tagger.batches(corpus, inference_batch_size(corpus))]
    said = tagger.add_columns(corpus, parts).columns
    own = {role: values for role, values in said.items() if role not in corpus.columns}
    return column_lines(given, own, flat_labels(corpus, tagger.labels, parts))


def _candidate_lines(tagger: Tagger, k: int, given: TagInput) -> Iterator[str]:
    """Yield each sequence's k best: a comment with rank, score and log-probability, then word and label per line."""
    corpus = given.corpus
    if given.block.first == 1:
        yield f"{header_line(['word', PREDICTED])}\n\n"
    words = [corpus.columns["word"][a:b] for a, b in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)]
    step = max(1, TOGETHER // k)  # of long lists, no more than these are kept
    stretches = (corpus.slice(a, min(a + step, len(corpus))) for a in range(0, len(corpus), step))
    lists = (found for part in stretches for found in tagger.candidates(part, k))
    for sequence, found in zip(words, lists, strict=True):
        for rank, labelling in enumerate(found, 1):
            log_p = "" if labelling.log_probability is None else f" log-probability {labelling.log_probability:.6f}"
            yield f"# {rank} score {labelling.score:.6g}{log_p}\n"
            yield from (f"{w} {label}\n" for w, label in zip(sequence, labelling.labels, strict=True))
            yield "\n"
