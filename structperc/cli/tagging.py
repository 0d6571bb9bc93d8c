"""Labelling of files by a saved model, block by block as their text arrives; one file or several."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from structperc.analysis.input_files import DEFAULT_READING
from structperc.analysis.tag_input import InputPlan, TagInput, TextSplitting, column_option, plan_input, read_block
from structperc.analysis.tag_output import (
    Format,
    MarkedText,
    brat_lines,
    column_lines,
    marked_texts,
    output_lines,
)
from structperc.cli.arguments import load_guided
from structperc.data.conll import header_line
from structperc.data.format_detection import is_detectable, log_format
from structperc.data.output import check_output_path, open_atomic, write_lines
from structperc.data.read_options import PREDICTED, ReadOptions
from structperc.data.streaming import Block, blocks, nowhere, read_head
from structperc.data.text_files import PIECE, expand_path, stream_text
from structperc.errors import InputError
from structperc.loading import load
from structperc.predictor import Predictor
from structperc.process_pool import Workers, start_workers
from structperc.progress import bar

if TYPE_CHECKING:
    from structperc.taggers.guided_tagger import GuidedTagger
    from structperc.taggers.tagger import Tagger

SUFFIXES = {"columns": ".conll", "jsonl": ".jsonl", "html": ".html", "brat": ".ann"}
LISTED = 2**16  # label sequences that are in memory together

logger = logging.getLogger("pytorch_lightning.structperc")


class OutputOptions(NamedTuple):
    """Content of the output: the best labels in a format, with probabilities or order of decisions, or the k best."""

    form: Format | None = None  # None: JSON lines for JSON lines, columns for everything else
    k: int | None = None
    order: bool = False
    probabilities: bool = False

    def check(self) -> None:
        """Raise InputError for options that exclude each other."""
        if self.k is not None and self.k < 1:
            raise InputError(f"-k must be >= 1, got {self.k}")
        lists = "-k" if self.k is not None else "--order" if self.order else None
        if lists and self.form not in (None, "columns"):
            raise InputError(f"{lists} writes columns only; leave out --format {self.form}, or {lists}")
        if lists and self.probabilities:
            raise InputError(f"{lists} excludes --probabilities; leave out one of them")


class TaggedBlock(NamedTuple):
    """The output for a block of the input, up to the first error in it."""

    text: str
    tokens: int
    error: InputError | None = None
    marked: Sequence[MarkedText] = ()  # for files of brat, in place of the text


Tag = Callable[[TagInput], TaggedBlock]
Write = Callable[[TaggedBlock], None]


class FileTagger:
    """A saved model, loaded once, that labels files.

    Columns stay as they are, also those that the model does not read. A file is read in pieces; its complete sequences
    are labelled and written before the next piece is read.

    Args:
        model: folder of the model.
        shown: content of the output.
        reading: how files are read.
        text_options: form of the input, and how running text is split.
        trusted: modules whose classes the model may name.
        workers: processes, each with the model in memory; a piece is labelled by one of them.
        piece: most bytes of a piece.

    Raises:
        InputError: options that exclude each other.
    """

    def __init__(
        self,
        model: str,
        shown: OutputOptions = OutputOptions(),  # noqa: B008  # immutable
        reading: ReadOptions = DEFAULT_READING,
        text_options: TextSplitting = TextSplitting(),  # noqa: B008
        trusted: Sequence[str] = (),
        workers: int = 1,
        piece: int = PIECE,
    ) -> None:
        shown.check()
        if workers < 1:
            raise InputError(f"--workers must be >= 1, got {workers}")
        self.shown, self.reading, self.text_options = shown, reading, text_options
        self.workers, self.piece = workers, piece
        self._load = cache(partial(_load, model, trusted, shown))  # once in this process
        several = partial(_load_for_blocks, model, trusted, shown)
        self._make = several if workers > 1 else lambda: partial(_tag_block, *self._load())

    def tag_file(self, file: str, output: str | None = None) -> None:
        """Label a file and write it to another one, whole or not at all, or to standard output.

        Standard output has everything before an error. Raises InputError for a missing file or model, a file of unknown
        format, columns that the model needs and the file lacks, and output that the model cannot give.
        """
        if output is not None:
            check_output_path(output)
        elif sys.stdout is None:
            raise InputError("standard output is closed; write to a file with -o")
        self._tag(file, partial(_open_output, output), output is not None or not sys.stdout.isatty())

    def tag_files(self, files: Sequence[str], output: str) -> None:
        """Label files, and those in folders, and write each into the folder `output`, which is made if need be.

        Each file keeps its path below the folder that was given, and its name; with a format its suffix is that of the
        format. Marks of brat are a pair NAME.txt and NAME.ann for running text and columns without documents,
        NAME-1.txt, NAME-1.ann, ... for the texts of another file. A text file that is in `output` itself gets its
        marks beside it.

        A file that fails is named on standard error, and the others are labelled. Raises InputError before anything
        is written if two files have one target or a file is its own, and at the end if some have failed.
        """
        targets = _targets(files, Path(output), self.shown.form)
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
                self._tag(file, pairs if self.shown.form == "brat" else partial(_open_output, target), True)
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

    def _tag(self, file: str, target: Callable[[InputPlan], AbstractContextManager[Write]], visible: bool) -> None:
        """Label a file block by block; `target` opens the output, `visible` shows a bar."""
        reading, text_options = self.reading, self.text_options
        with (
            start_workers(Workers(self.workers, "set --workers 1"), self._make) as work,  # they load meanwhile
            closing(stream_text(expand_path(file), reading.encoding, self.piece, keep_mark=True)) as pieces,
        ):
            tagger, _ = self._load()
            known = text_options.form is not None or column_option(reading) is not None
            needed = len(tagger.features.columns)
            head = read_head(pieces, lambda lines: known or is_detectable(lines, needed))
            plan = plan_input(tagger, head, file, self.shown.form, reading, text_options)
            given = blocks(head.pieces, nowhere if plan.whole else plan.ends)
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
                        log_format(plan.form, file)
                if not tokens and plan.form != "jsonl":
                    raise InputError(f"{file}: there are no tokens in this file")


# -- blocks ---------------------------------------------------------------------------------------------------


def _load(model: str, trusted: Sequence[str], shown: OutputOptions) -> tuple[Predictor, Tag]:
    """The model, with PyTorch only where more than labels is written, and the function that gives the output."""
    if shown.k is None and not shown.order:
        tagger = load(model, trusted)
        return tagger, partial(_tag_best, tagger, shown)
    from structperc.taggers.base import BaseTagger
    from structperc.taggers.tagger import Tagger

    if shown.k is None:
        guided = load_guided(model, trusted)
        return guided, partial(_tag_with_order, guided)
    whole = BaseTagger.load(model, trusted=trusted)
    if not isinstance(whole, Tagger):
        raise InputError(f"{model}: a {type(whole).__name__} has no list of label sequences; leave out -k")
    return whole, partial(_tag_candidates, whole, shown.k)


def _load_for_blocks(
    model: str, trusted: Sequence[str], shown: OutputOptions
) -> Callable[[tuple[InputPlan, Block]], TaggedBlock]:
    return partial(_tag_block, *_load(model, trusted, shown))


def _tag_block(tagger: Predictor, tag: Tag, given: tuple[InputPlan, Block]) -> TaggedBlock:
    """Label a block; one with an error as far as its sentences can be labelled one by one."""
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
    marked = [one for part in found for one in part.marked]
    text, tokens = "".join(part.text for part in found), sum(part.tokens for part in found)
    return TaggedBlock(text, tokens, found[-1].error, marked)


def _tag_best(tagger: Predictor, shown: OutputOptions, given: TagInput) -> TaggedBlock:
    form = shown.form or ("jsonl" if given.plan.form == "jsonl" else "columns")
    decided, tokens = tagger.predict(given.corpus, shown.probabilities), given.corpus.tokens
    if form == "brat":
        return TaggedBlock("", tokens, marked=marked_texts(given, decided, tagger.labels.scheme))
    return TaggedBlock("".join(output_lines(given, decided, tagger.labels, form)), tokens)


def _tag_with_order(tagger: "GuidedTagger", given: TagInput) -> TaggedBlock:
    """Columns, with the order of decisions before the label."""
    import torch

    from structperc.taggers.base import flat_labels, inference_batch_size

    corpus = given.corpus
    with torch.no_grad():
        parts = [tagger.predict_step(batch) for batch in tagger.batches(corpus, inference_batch_size(corpus))]
    columns = tagger.add_columns(corpus, parts).columns
    own = {role: values for role, values in columns.items() if role not in corpus.columns}
    lines = column_lines(given, own, flat_labels(corpus, tagger.labels, parts))
    return TaggedBlock("".join(lines), corpus.tokens)


def _tag_candidates(tagger: "Tagger", k: int, given: TagInput) -> TaggedBlock:
    """Each sequence's k best: a comment with rank, score and log-probability, then word and label per line."""
    corpus = given.corpus
    lines = [f"{header_line(['word', PREDICTED])}\n\n"] if given.block.first == 1 else []
    words = [corpus.columns["word"][a:b] for a, b in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)]
    step = max(1, LISTED // k)
    slices = (corpus.slice(a, min(a + step, len(corpus))) for a in range(0, len(corpus), step))
    lists = (found for part in slices for found in tagger.candidates(part, k))
    for sequence, found in zip(words, lists, strict=True):
        for rank, one in enumerate(found, 1):
            log_p = "" if one.log_probability is None else f" log-probability {one.log_probability:.6f}"
            lines.append(f"# {rank} score {one.score:.6g}{log_p}\n")
            lines += [f"{w} {label}\n" for w, label in zip(sequence, one.labels, strict=True)]
            lines.append("\n")
    return TaggedBlock("".join(lines), corpus.tokens)


# -- files ----------------------------------------------------------------------------------------------------


def is_folder(output: str | None) -> bool:
    """Return whether labels are to be written into a folder: one that exists, or a path that ends as one does."""
    return output is not None and (os.path.isdir(output) or output.endswith((os.sep, "/")))


@contextmanager
def _open_output(output: str | Path | None, plan: InputPlan) -> Iterator[Write]:
    """Yield a function that writes blocks into one file, or to standard output, without delay.

    Raises InputError for marks of brat of a file that may hold several texts.
    """
    if plan.shown == "brat" and plan.form != "text":
        raise InputError("brat has a pair of files for each text, of which there may be several; set -o FOLDER/")

    def text_of(block: TaggedBlock) -> str:
        return block.text + "".join(line for one in block.marked for line in brat_lines(*one, plan.mark))

    if output is None:

        def show(block: TaggedBlock) -> None:
            sys.stdout.write(text_of(block))
            sys.stdout.flush()

        yield show
        return
    with open_atomic(output) as file:

        def write(block: TaggedBlock) -> None:
            file.write(text_of(block).encode("utf-8", "surrogateescape"))
            file.flush()

        yield write


@contextmanager
def _open_pairs(file: str, target: Path, written: dict[Path, str], plan: InputPlan) -> Iterator[Write]:
    """Yield a function that writes a pair of files of brat for each text."""
    numbers = count(1)
    single = plan.form == "text" or (plan.form == "columns" and not plan.above.marked)

    def write(block: TaggedBlock) -> None:
        for marks in block.marked:
            path = target if single else target.with_stem(f"{target.stem}-{next(numbers)}")
            text = path.with_suffix(".txt")
            in_place = _is_same(text, file)
            if in_place and plan.form != "text":
                raise InputError(f"{file}: its text would be written in its place; set -o to another folder")
            if written.setdefault(path, file) != file:
                raise InputError(f"{file}: {path} holds marks of {written[path]} already; rename one")
            if not in_place:
                write_lines(text, [marks.text])
            write_lines(path, brat_lines(*marks, plan.mark if in_place else 0))

    yield write


def _targets(files: Sequence[str], folder: Path, form: str | None) -> dict[Path, str]:
    """Return the files to label by their targets, after a check of the names."""
    found: dict[Path, str] = {}
    for path, below in _inputs(files, folder):
        plain = below.with_suffix("") if below.suffix == ".gz" else below
        target = folder / (plain if form is None else plain.with_suffix(SUFFIXES[form]))
        if target in found:
            raise InputError(f"{path} and {found[target]} would both be written to {target}; rename one")
        if _is_same(target, path):
            raise InputError(f"{path}: its labels would be written in its place; set -o to another folder")
        found[target] = str(path)
    return found


def _inputs(files: Sequence[str], folder: Path) -> Iterable[tuple[Path, Path]]:
    """Files, with their paths below the folder in which they were found; hidden ones and marks are passed over."""
    for name in files:
        path = expand_path(name)
        if name == "-":
            raise InputError("standard input has no name for a file in a folder; label it alone, with -o FILE")
        if not path.is_dir():
            yield path, Path(path.name)
            continue
        inside = [one for one in sorted(path.rglob("*")) if one.is_file() and _is_input(one.relative_to(path))]
        found = [one for one in inside if _is_same(folder, path) or folder.resolve() not in one.resolve().parents]
        if not found:
            raise InputError(f"{path}: there are no files to label in this folder")
        yield from ((one, one.relative_to(path)) for one in found)


def _is_input(below: Path) -> bool:
    return not any(part.startswith(".") for part in below.parts) and below.suffix != SUFFIXES["brat"]


def _is_same(one: Path, other: str | Path) -> bool:
    return one.exists() and os.path.exists(other) and os.path.samefile(one, other)
