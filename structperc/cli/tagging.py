"""Files labelled by a saved model, block by block as their text arrives."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, partial
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from structperc.analysis.input_files import DEFAULT_READING
from structperc.analysis.tag_input import InputPlan, TagInput, TextSplitting, column_option, plan_input, read_block
from structperc.analysis.tag_output import (
    Format,
    MarkedText,
    column_lines,
    marked_texts,
    output_lines,
)
from structperc.cli.arguments import load_guided
from structperc.data.conll import header_line
from structperc.data.format_detection import FORMAT_NAMES, is_detectable, read_head
from structperc.data.labels import LabelSet
from structperc.data.output import check_output_path, check_text, open_atomic, write_lines
from structperc.data.possible_labels import read_lexicon, with_lexicon
from structperc.data.read_options import DOCSTART, PREDICTED, ReadOptions
from structperc.data.splits import chunk_bounds
from structperc.data.standoff import brat_lines
from structperc.data.text_files import PIECE, Block, blocks, expand_path, no_ends, stream_text
from structperc.errors import InputError
from structperc.loading import load
from structperc.predictor import Predictor
from structperc.process_pool import Workers, start_workers
from structperc.progress import bar

if TYPE_CHECKING:
    from structperc.models import ChainModel
    from structperc.taggers.guided_tagger import GuidedTagger

SUFFIXES = {"columns": ".conll", "jsonl": ".jsonl", "html": ".html", "brat": ".ann"}
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
        if lists and self.probabilities:
            raise InputError(f"{lists} excludes --probabilities; leave out one of them")
        if lists and self.bias is not None:
            raise InputError(f"{lists} excludes --bias; leave out one of them")
        if self.min_probability is not None and (lists or self.form not in (None, "jsonl")):
            raise InputError("--min-probability writes JSON lines only; set --format jsonl")


class TaggedBlock(NamedTuple):
    """The output for a block of the input, up to the first error in it."""

    text: str
    tokens: int
    error: InputError | None = None
    marked: Sequence[MarkedText] = ()  # for brat, instead of the text


TagBlock = Callable[[TagInput], TaggedBlock]
WriteBlock = Callable[[TaggedBlock], None]


class FileTagger:
    """A saved model, loaded once, that labels files.

    All input columns are kept. A file is read in chunks; the complete sequences of a chunk are labelled and written
    before the next chunk is read.

    Args:
        model: folder of the model.
        output_options: format and content of the output.
        read_options: options for reading files.
        text_options: form of the input, tokenizer and sentence splitter.
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
        text_options: TextSplitting = TextSplitting(),  # noqa: B008
        trusted: Sequence[str] = (),
        workers: int = 1,
        chunk_size: int = PIECE,
    ) -> None:
        output_options.check()
        if workers < 1:
            raise InputError(f"--workers must be >= 1, got {workers}")
        self.output_options, self.read_options, self.text_options = output_options, read_options, text_options
        self.workers, self.chunk_size = workers, chunk_size
        self._load = cache(partial(_load, model, trusted, output_options))  # once in this process
        self._make = partial(
            _load_for_blocks, self._load if workers == 1 else partial(_load, model, trusted, output_options)
        )

    def tag_file(self, file: str, output: str | None = None) -> None:
        """Label a file and write it to another one, complete or not at all, or to standard output up to an error.

        Raises InputError for a missing file or model, an unknown format, missing columns, and output that the model
        does not support.
        """
        if output is not None:
            check_output_path(output)
        elif sys.stdout is None:
            raise InputError("standard output is closed; write to a file with -o")
        self._tag(file, partial(_open_output, output), output is not None or not sys.stdout.isatty())

    def tag_files(self, files: Sequence[str], output: str) -> None:
        """Label files, and those in folders, and write each into the folder `output`, which is created if missing.

        Each file keeps its path below the given folder; a format changes its suffix. Output for brat is a pair NAME.txt
        and NAME.ann for running text and columns without document boundaries, otherwise NAME-1.txt, NAME-1.ann, ... for
        the documents. A text file in `output` itself gets only its .ann file.

        A file that fails is logged, and the others are labelled. Raises InputError before anything is written if two
        files have the same target or a file is its own target, and at the end if some have failed.
        """
        targets = _targets(files, Path(output), self.output_options.form)
        written: dict[Path, str] = {}
        failed: list[InputError] = []
        for target, file in targets.items():
            try:
                try:
                    target.parent.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise InputError(f"{target.parent}: cannot make this folder ({error.strerror or error})") from None
                check_output_path(target)
                pairs = partial(_open_pairs, file, target, written)
                self._tag(file, pairs if self.output_options.form == "brat" else partial(_open_output, target), True)
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
        read_options, text_options = self.read_options, self.text_options
        with (
            start_workers(
                Workers(self.workers, "set --workers 1"), self._make
            ) as work,  # workers load the model meanwhile
            closing(stream_text(expand_path(file), read_options.encoding, self.chunk_size, keep_mark=True)) as pieces,
        ):
            tagger, _ = self._load()
            known = text_options.form is not None or column_option(read_options) is not None
            needed = len(tagger.columns)
            head = read_head(pieces, lambda lines: known or is_detectable(lines, needed))
            plan = plan_input(tagger, head, file, self.output_options.form, read_options, text_options)
            given = _reported(blocks(head.pieces, no_ends if plan.whole else plan.ends), plan)
            tagged = work(None if block is None else (plan, block) for block in given)
            tokens = 0
            with target(plan) as write, bar(None, file, show=visible, unit=" tokens", unit_scale=True) as progress:
                for number, one in enumerate(tagged):
                    progress.update(one.tokens)
                    write(one)
                    tokens += one.tokens
                    if one.error is not None:
                        raise one.error
                    if number == 0 and not known:
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


def _load(model: str, trusted: Sequence[str], output_options: OutputOptions) -> tuple[Predictor, TagBlock]:
    """Return the model, and the function that labels a block, with the lexicon if there is one."""
    tagger, tag = _load_model(model, trusted, output_options)
    if output_options.lexicon is None:
        return tagger, tag
    return tagger, partial(_tag_with_lexicon, tagger.labels, read_lexicon(output_options.lexicon, tagger.labels), tag)


def _tag_with_lexicon(
    labels: LabelSet, lexicon: Mapping[str, Sequence[str]], tag: TagBlock, given: TagInput
) -> TaggedBlock:
    return tag(given._replace(corpus=with_lexicon(given.corpus, lexicon, labels)))


def _load_model(model: str, trusted: Sequence[str], output_options: OutputOptions) -> tuple[Predictor, TagBlock]:
    """Return the model, with PyTorch only for -k and --order, and the function that labels a block."""
    if output_options.k is None and not output_options.order:
        tagger = load(model, trusted, output_options.bias)
        return tagger, partial(_tag_best, tagger, output_options)
    from structperc.models import ChainModel, Model

    if output_options.k is None:
        guided = load_guided(model, trusted)
        return guided, partial(_tag_with_order, guided)
    whole = Model.load(model, trusted=trusted)
    if not isinstance(whole, ChainModel):
        raise InputError(f"{model}: a {type(whole).__name__} does not support n-best output; remove -k")
    return whole, partial(_tag_candidates, whole, output_options.k)


def _load_for_blocks(load: Callable[[], tuple[Predictor, TagBlock]]) -> Callable[..., TaggedBlock]:
    return partial(_tag_block, *load())


def _tag_block(tagger: Predictor, tag: TagBlock, given: tuple[InputPlan, Block]) -> TaggedBlock:
    """Label a block; one with an error sentence by sentence, up to the error."""
    plan, block = given
    try:
        return tag(read_block(tagger, block, plan))
    except InputError as error:
        parts = block.parts(plan.ends)
        if len(parts) == 1:
            return TaggedBlock("", 0, error)
    found: list[TaggedBlock] = []
    for part in parts:
        found.append(_tag_block(tagger, tag, (plan._replace(whole=False), part)))
        if found[-1].error is not None:
            break
    text, tokens = "".join(part.text for part in found), sum(part.tokens for part in found)
    return TaggedBlock(text, tokens, found[-1].error, [one for part in found for one in part.marked])


def _tag_best(tagger: Predictor, output_options: OutputOptions, given: TagInput) -> TaggedBlock:
    form = output_options.form or ("jsonl" if given.plan.form == "jsonl" else "columns")
    if output_options.min_probability is not None and form != "jsonl":
        raise InputError("--min-probability writes JSON lines only; set --format jsonl")
    prediction = tagger.predict(given.corpus, output_options.probabilities, output_options.min_probability)
    tokens = given.corpus.tokens
    if prediction.spans is not None and form == "html":
        raise InputError("--format html shows no segments that overlap, which this bias finds; use jsonl or brat")
    if form == "brat":
        return TaggedBlock("", tokens, marked=marked_texts(given, prediction, tagger.labels.scheme))
    return TaggedBlock("".join(output_lines(given, prediction, tagger.labels, form)), tokens)


def _tag_with_order(tagger: "GuidedTagger", given: TagInput) -> TaggedBlock:
    further, labels = tagger.further_columns(given.corpus), tagger.predict(given.corpus).labels
    return TaggedBlock("".join(column_lines(given, further, labels, tagger.labels.names)), given.corpus.tokens)


def _tag_candidates(tagger: "ChainModel", k: int, given: TagInput) -> TaggedBlock:
    """Return the k best of each sequence: a comment with rank, score and log-probability, then words and labels."""
    corpus = given.corpus
    lines = [f"{header_line(['word', PREDICTED])}\n\n"] if given.block.first == 1 else []
    words = [corpus.columns["word"][a:b] for a, b in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)]
    size = MAX_LISTED // k * corpus.tokens // max(1, len(corpus))  # in tokens
    bounds = chunk_bounds(corpus, max(1, size), tagger.extent)
    lists = (found for a, b in pairwise(bounds) for found in tagger.candidates(corpus.slice(a, b), k))
    for sequence, found in zip(words, lists, strict=True):
        for rank, one in enumerate(found, 1):
            log_p = "" if one.log_probability is None else f" log-probability {one.log_probability:.6f}"
            lines.append(f"# {rank} score {one.score:.6g}{log_p}\n")
            lines += [f"{w} {label}\n" for w, label in zip(sequence, one.labels, strict=True)]
            lines.append("\n")
    return TaggedBlock("".join(lines), corpus.tokens)


def is_folder(output: str | None) -> bool:
    """Return True for an existing folder, and for a path that ends with a separator."""
    return output is not None and (os.path.isdir(output) or output.endswith((os.sep, "/")))


@contextmanager
def _open_output(output: str | Path | None, plan: InputPlan) -> Iterator[WriteBlock]:
    """Yield a function that writes blocks into one file, or to standard output, and flushes.

    Raises InputError for brat output of a file that may contain several texts.
    """
    if plan.output_format == "brat" and plan.form != "text":
        raise InputError("brat needs a pair of files for each text of the input; set -o FOLDER/")

    def text_of(block: TaggedBlock) -> str:
        text = block.text + "".join(line for one in block.marked for line in brat_lines(*one, plan.mark))
        return check_text(text, "standard output" if output is None else output)

    if output is None:
        yield lambda block: print(text_of(block), end="", flush=True)
        return
    with open_atomic(output) as file:

        def write(block: TaggedBlock) -> None:
            file.write(text_of(block).encode("utf-8", "surrogateescape"))
            file.flush()

        yield write


@contextmanager
def _open_pairs(file: str, target: Path, written: dict[Path, str], plan: InputPlan) -> Iterator[WriteBlock]:
    numbers = count(1)
    single = plan.form == "text" or (plan.form == "columns" and not plan.above.marked)

    def write(block: TaggedBlock) -> None:
        for marks in block.marked:
            path = target if single else target.with_stem(f"{target.stem}-{next(numbers)}")
            text = path.with_suffix(".txt")
            in_place = _is_same(text, file)
            if in_place and plan.form != "text":
                raise InputError(f"{file}: the output would overwrite the input file; set -o to another folder")
            if written.setdefault(path, file) != file:
                raise InputError(f"{file}: {path} is the output of {written[path]}; rename one")
            if not in_place:
                write_lines(text, [marks.text])
            write_lines(path, brat_lines(*marks, plan.mark if in_place else 0))

    yield write


def _targets(files: Sequence[str], folder: Path, form: str | None) -> dict[Path, str]:
    found: dict[Path, str] = {}
    for path, below in _inputs(files, folder):
        plain = below.with_suffix("") if below.suffix == ".gz" else below
        target = folder / (plain if form is None else plain.with_suffix(SUFFIXES[form]))
        if target in found:
            raise InputError(f"{path} and {found[target]} would both be written to {target}; rename one")
        if _is_same(target, path):
            raise InputError(f"{path}: the output would overwrite the input file; set -o to another folder")
        found[target] = str(path)
    return found


def _inputs(files: Sequence[str], folder: Path) -> Iterable[tuple[Path, Path]]:
    """Yield files with their paths below the given folders; hidden ones and those of brat are skipped."""
    for name in files:
        path = expand_path(name)
        if name == "-":
            raise InputError("standard input has no file name; tag it in a separate run with -o FILE")
        if not path.is_dir():
            yield path, Path(path.name)
            continue
        inside = [one for one in sorted(path.rglob("*")) if one.is_file() and one.suffix != SUFFIXES["brat"]]
        inside = [one for one in inside if not any(part.startswith(".") for part in one.relative_to(path).parts)]
        found = [one for one in inside if _is_same(folder, path) or folder.resolve() not in one.resolve().parents]
        if not found:
            raise InputError(f"{path}: no files to label in this folder")
        yield from ((one, one.relative_to(path)) for one in found)


def _is_same(one: Path, other: str | Path) -> bool:
    return one.exists() and os.path.exists(other) and os.path.samefile(one, other)
