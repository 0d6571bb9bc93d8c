"""Files labelled by a saved model, block by block as their text arrives."""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from structperc.data.conll import header_line
from structperc.data.format_detection import FORMAT_NAMES
from structperc.data.output import check_output_path, make_folder
from structperc.data.possible_labels import read_lexicon, with_lexicon
from structperc.data.read_options import DEFAULT_READING, DOCSTART, PREDICTED, ReadOptions
from structperc.data.splits import chunk_bounds
from structperc.data.text_files import PIECE, Block
from structperc.errors import InputError
from structperc.loading import load, load_chain, load_guided
from structperc.process_pool import Workers, start_workers
from structperc.progress import bar
from structperc.tagging.reading import InputPlan, TagInput, is_form_given, open_input, read_block
from structperc.tagging.writing import (
    Format,
    TaggedBlock,
    WriteBlock,
    column_lines,
    open_output,
    open_pairs,
    output_targets,
    tagged_block,
)

MAX_LISTED = 2**16  # label sequences in memory
MAX_BLOCK = 2**20  # characters labelled at a time in less than 300 MB
BYTES = 150  # of memory for a character of a block
SMALLER = {  # by what ends a block
    "whole file": "label parts of the file, or set --unit sentence if the model reads documents",
    "documents": f"write a line {DOCSTART} before each document",
    "sentences": "write an empty line after each sentence",
    "paragraphs": "write an empty line after each paragraph",
    "lines": "divide long texts",
}

if TYPE_CHECKING:
    from structperc.models.chain_model import ChainModel

logger = logging.getLogger("pytorch_lightning.structperc")


class OutputOptions(NamedTuple):
    """Format and content of the output: the best labels, with probabilities or order of decisions, or the k best."""

    form: Format | None = None  # None: JSON lines for JSON lines, otherwise columns
    k: int | None = None
    order: bool = False
    probabilities: bool = False
    min_probability: float | None = None  # of segments that are not in the best label sequence
    bias: str | None = None  # name of a bias, "none" for no bias, or None for the default of the model
    lexicon: str | None = None  # file of allowed labels of words, see `data.read_lexicon`

    def check(self) -> None:
        """Raise InputError for options that exclude each other."""
        if self.k is not None and self.k < 1:
            raise InputError(f"-k must be >= 1, got {self.k}")
        lists = "-k" if self.k is not None else "--order" if self.order else None
        if lists and self.form not in (None, "columns"):
            raise InputError(f"{lists} writes columns only; leave out --format {self.form}, or {lists}")
        for name, given in (("--probabilities", self.probabilities), ("--bias", self.bias is not None)):
            if lists and given:
                raise InputError(f"{lists} excludes {name}; leave out one of them")
        if lists or self.form is not None:
            self.check_objects(self.form)

    def check_objects(self, form: Format | None) -> None:
        """Raise InputError if there is a least probability, which only JSON lines can have, in another format."""
        if self.min_probability is not None and form != "jsonl":
            raise InputError("--min-probability writes JSON lines only; set --format jsonl")


class BlockTagger:
    """A loaded model that labels blocks of files, with PyTorch only if it needs it, for -k or for --order.

    Args:
        model: folder of the model.
        trusted: modules whose classes the model may name.
        output_options: format and content of the output.

    Raises:
        InputError: a model that cannot be loaded or does not support the output, or an invalid lexicon.
    """

    def __init__(self, model: str, trusted: Sequence[str], output_options: OutputOptions) -> None:
        self.options, self.tagger = output_options, _load(model, trusted, output_options)
        lexicon = output_options.lexicon
        self.lexicon = None if lexicon is None else read_lexicon(lexicon, self.tagger.labels)

    def __call__(self, given: tuple[InputPlan, Block]) -> TaggedBlock:
        """Label a block; one with an error sentence by sentence, up to the error."""
        plan, block = given
        try:
            return self._tag(read_block(self.tagger, block, plan))
        except InputError as error:
            parts = block.parts(plan.ends)
            if len(parts) == 1:
                return TaggedBlock("", 0, error)
        found: list[TaggedBlock] = []
        for part in parts:
            found.append(self((plan._replace(whole=False), part)))
            if found[-1].error is not None:
                break
        text, tokens = "".join(part.text for part in found), sum(part.tokens for part in found)
        return TaggedBlock(text, tokens, found[-1].error, [pair for part in found for pair in part.pairs])

    def _tag(self, given: TagInput) -> TaggedBlock:
        options, tagger, corpus = self.options, self.tagger, given.corpus
        if self.lexicon is not None:
            given = given._replace(corpus=with_lexicon(corpus, self.lexicon, tagger.labels))
        if options.k is not None:
            lines = _candidate_lines(tagger, options.k, given)
        elif options.order:
            predicted = tagger.further_columns(corpus), tagger.predict(corpus).labels
            lines = column_lines(given, *predicted, tagger.labels.names)
        else:
            form = options.form or ("jsonl" if given.plan.form == "jsonl" else "columns")
            options.check_objects(form)
            prediction = tagger.predict(given.corpus, options.probabilities, options.min_probability)
            return tagged_block(given, prediction, tagger.labels, form)
        return TaggedBlock("".join(lines), corpus.tokens)


def _load(model: str, trusted: Sequence[str], options: OutputOptions) -> Any:
    """Return the predictor, or the tagger that has the output."""
    if options.k is not None:
        return load_chain(model, trusted, "does not support n-best output; remove -k")
    return load_guided(model, trusted) if options.order else load(model, trusted, options.bias)


def _candidate_lines(tagger: "ChainModel", k: int, given: TagInput) -> Iterator[str]:
    """Yield the k best of each sequence: a comment with rank, score and log-probability, then words and labels."""
    corpus = given.corpus
    if given.block.first == 1:
        yield f"{header_line(['word', PREDICTED])}\n\n"
    size = MAX_LISTED // k * corpus.tokens // max(1, len(corpus))  # in tokens
    for first, last in pairwise(chunk_bounds(corpus, max(1, size), tagger.extent)):
        part = corpus.slice(first, last)
        for words, found in zip(part.sequences_of(part.columns["word"]), tagger.kbest(part, k), strict=True):
            for rank, one in enumerate(found, 1):
                log_p = "" if one.log_probability is None else f" log-probability {one.log_probability:.6f}"
                yield f"# {rank} score {one.score:.6g}{log_p}\n"
                yield from (f"{word} {label}\n" for word, label in zip(words, one.labels, strict=True))
                yield "\n"


class FileTagger:
    """A saved model, loaded once, that labels files.

    All input columns are kept. A file is read in chunks; the complete sequences of a chunk are labelled and written
    before the next chunk is read.

    Args:
        model: folder of the model.
        output_options: format and content of the output.
        read_options: options for reading files.
        trusted: modules whose classes the model may name.
        workers: processes, each with the model in memory.
        chunk_size: maximum number of bytes read at a time.

    Raises:
        InputError: options that exclude each other.
    """

    def __init__(
        self,
        model: str,
        output_options: OutputOptions = OutputOptions(),  # noqa: B008  # immutable
        read_options: ReadOptions = DEFAULT_READING,
        trusted: Sequence[str] = (),
        workers: int = 1,
        chunk_size: int = PIECE,
    ) -> None:
        output_options.check()
        if workers < 1:
            raise InputError(f"--workers must be >= 1, got {workers}")
        self.form, self.reading = output_options.form, read_options
        self.workers, self.chunk_size = Workers(workers, "set --workers 1"), chunk_size
        make = partial(BlockTagger, model, trusted, output_options)
        self._load = cache(make)  # once in this process
        self._make = self._load if workers == 1 else make

    def tag_file(self, file: str, output: str | None = None) -> None:
        """Label a file and write it to another one, complete or not at all, or to standard output up to an error.

        Raises InputError for a missing file or model, an unknown format, missing columns, and output that the model
        does not support.
        """
        check_output_path(output)
        if output is None and sys.stdout is None:
            raise InputError("standard output is closed; write to a file with -o")
        self._tag(file, partial(open_output, output), output is not None or not sys.stdout.isatty())

    def tag_files(self, files: Sequence[str], output: str) -> None:
        """Label files, and those in folders, and write each into the folder `output`, which is created if missing.

        Each file keeps its path below the given folder; a format changes its suffix. Output for brat is a pair NAME.txt
        and NAME.ann for running text and columns without document boundaries, otherwise NAME-1.txt, NAME-1.ann, ... for
        the documents. A text file in `output` itself gets only its .ann file.

        A file that fails is logged, and the others are labelled. Raises InputError before anything is written if two
        files have the same target or a file is its own target, and at the end if some have failed.
        """
        targets = output_targets(files, Path(output), self.form)
        written: dict[Path, str] = {}
        failed: list[InputError] = []
        for target, file in targets.items():
            try:
                make_folder(target.parent)
                check_output_path(target)
                pairs = partial(open_pairs, file, target, written)
                self._tag(file, pairs if self.form == "brat" else partial(open_output, target), True)
            except InputError as error:
                if len(targets) == 1:
                    raise
                failed.append(error)
                logger.error("not labelled: %s", error)
        if failed:
            names = f"; the first: {failed[0]}" if len(failed) > 1 else f": {failed[0]}"
            done = len(targets) - len(failed)
            rest = f"; {done:,} {'is' if done == 1 else 'are'} written to {output}" if done else ""
            raise InputError(f"{len(failed):,} of {len(targets):,} files could not be labelled{names}{rest}")

    def _tag(self, file: str, target: Callable[[InputPlan], AbstractContextManager[WriteBlock]], visible: bool) -> None:
        tokens = 0
        with (
            start_workers(self.workers, self._make) as work,  # workers load the model meanwhile
            open_input(self._load().tagger, file, self.form, self.reading, self.chunk_size) as (plan, given),
            target(plan) as write,
            bar(None, file, show=visible, unit=" tokens", unit_scale=True) as progress,
        ):
            tagged = work(None if block is None else (plan, block) for block in _reported(given, plan))
            for number, one in enumerate(tagged):
                progress.update(one.tokens)
                write(one)
                tokens += one.tokens
                if one.error is not None:
                    raise one.error
                if number == 0 and not is_form_given(self.reading):
                    logger.info("%s: read as %s; set --input to change that", file, FORMAT_NAMES[plan.form])
            if not tokens and plan.form != "jsonl":
                raise InputError(f"{file}: this file has no tokens")


def _reported(given: Iterable[Block | None], plan: InputPlan) -> Iterator[Block | None]:
    """Yield blocks, with a warning before the first one that needs much memory."""
    warned = False
    for block in given:
        if block is not None and len(block.text) > MAX_BLOCK and not warned:
            needed = f"in up to {len(block.text) * BYTES >> 20:,} MB of memory"
            size = f"{len(block.text):,} characters are labelled together, {needed}"
            logger.warning("%s:%d: %s; to need less, %s", plan.name, block.first, size, SMALLER[plan.cut])
            warned = True
        yield block
