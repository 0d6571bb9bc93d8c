"""Labelling of files by a saved model, block by block as their text arrives; one file or several.

What only taggers with PyTorch can show (k best label sequences, order of decisions) is in `tag_candidates`.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from structperc.analysis.input_files import DEFAULT_READING
from structperc.analysis.tag_input import InputPlan, TagInput, TextSplitting, column_option, plan_input, read_block
from structperc.analysis.tag_output import Format, Lines, MarkedText, brat_lines, marked_texts, output_lines
from structperc.data.format_detection import is_detectable, log_format
from structperc.data.output import check_output_path, open_atomic, write_lines
from structperc.data.read_options import ReadOptions
from structperc.data.streaming import Block, blocks, nowhere, read_head
from structperc.data.text_files import PIECE, expand_path, stream_text
from structperc.errors import InputError
from structperc.loading import load
from structperc.predictor import Predictor
from structperc.process_pool import Workers, start_workers
from structperc.progress import bar


class Shown(NamedTuple):
    """What is to be written: the best labels in a format, with their probabilities or their order, or the k best."""

    form: Format | None = None  # None: JSON lines as such, everything else as columns
    k: int | None = None
    order: bool = False
    probabilities: bool = False

    def check(self) -> None:
        """Raise InputError for what cannot be shown together."""
        if self.k is not None and self.k < 1:
            raise InputError(f"-k must be >= 1, got {self.k}")
        lists = "-k" if self.k is not None else "--order" if self.order else None
        if lists and self.form not in (None, "columns"):
            raise InputError(f"{lists} is shown in columns alone; leave out --format {self.form}, or {lists}")
        if lists and self.probabilities:
            raise InputError(f"{lists} and --probabilities are not shown together; leave out one of them")


class Asked(NamedTuple):
    """A block to be labelled, with what tells how it is read."""

    plan: InputPlan
    block: Block


class Done(NamedTuple):
    """What is to be written of a block, up to what is wrong in it."""

    text: str
    tokens: int
    wrong: InputError | None = None
    marked: Sequence[MarkedText] = ()  # for files of brat, in place of the text


DoneOf = Callable[[TagInput], Done]
Write = Callable[[Done], None]


def tag_file(
    model: str,
    file: str,
    reading: ReadOptions = DEFAULT_READING,
    output: str | None = None,
    shown: Shown = Shown(),  # noqa: B008  # immutable
    text_options: TextSplitting = TextSplitting(),  # noqa: B008
    trusted: Sequence[str] = (),
    workers: int = 1,
    piece: int = PIECE,
) -> None:
    """Label a file and write it with what the model predicts, see `Shown`; `tag_files` labels several.

    Columns stay as they are, those that the model does not read among them. The file is read in pieces of so many
    bytes at most, and what of them is complete is labelled and written before the next piece is read; with several
    workers, which are processes with a model each, they have a piece each. A file as output appears whole or not at
    all; standard output has everything before a mistake.

    Raises InputError for a missing file or model, a file whose form cannot be told, columns that the model needs and
    the file lacks, and for things to be shown that the model does not know.
    """
    shown.check()
    check_workers(workers)
    if output is not None:
        check_output_path(output)
    elif sys.stdout is None:
        raise InputError("standard output is closed; write to a file with -o")
    visible = output is not None or not sys.stdout.isatty()
    LabelSequence(model, shown, reading, text_options, trusted, workers, piece).label(
        file, partial(_one_file, output), visible
    )


class LabelSequence:
    """A saved model, loaded once, that labels one file after the other; options as those of `tag_file`."""

    def __init__(
        self,
        model: str,
        shown: Shown,
        reading: ReadOptions,
        text_options: TextSplitting,
        trusted: Sequence[str],
        workers: int,
        piece: int = PIECE,
    ) -> None:
        self.shown, self.reading, self.text_options, self.workers, self.piece = (
            shown,
            reading,
            text_options,
            workers,
            piece,
        )
        self._ready = cache(partial(_ready, model, trusted, shown))  # once in this process
        several = partial(_labelling, model, trusted, shown)
        self._make = several if workers > 1 else lambda: partial(_labelled, *self._ready())

    def label(self, file: str, target: Callable[[InputPlan], AbstractContextManager[Write]], visible: bool) -> None:
        """Label a file and write it block by block; `target` opens what writes, `visible` shows a bar."""
        reading, text_options = self.reading, self.text_options
        with (
            start_workers(
                Workers(self.workers, "set --workers 1"), self._make
            ) as labelled,  # several start while this loads
            closing(stream_text(expand_path(file), reading.encoding, self.piece, keep_mark=True)) as pieces,
        ):
            tagger, _ = self._ready()
            told = text_options.form is not None or column_option(reading) is not None
            needed = len(tagger.features.columns)
            begun = read_head(pieces, lambda lines: told or is_detectable(lines, needed))
            plan = plan_input(tagger, begun, file, self.shown.form, reading, text_options)
            given = blocks(begun.pieces, nowhere if plan.whole else plan.ends)
            done = labelled(None if block is None else Asked(plan, block) for block in given)
            with target(plan) as write:
                seen = _shown(done, file, visible)
                tokens = _write(seen, write, _nothing if told else partial(log_format, plan.form, file))
                if not tokens and plan.form != "jsonl":
                    raise InputError(f"{file}: there are no tokens in this file")


def check_workers(workers: int) -> None:
    """Raise InputError for a number of processes that is too small."""
    if workers < 1:
        raise InputError(f"--workers must be >= 1, got {workers}")


def _write(done: Iterable[Done], write: Write, say: Callable[[], None]) -> int:
    """Write one block after the other, and return the number of tokens; `say` when the first one is labelled."""
    tokens = 0
    for number, one in enumerate(done):
        write(one)
        tokens += one.tokens
        if one.wrong is not None:
            raise one.wrong
        if number == 0:
            say()
    return tokens


def _shown(done: Iterable[Done], file: str, visible: bool) -> Iterator[Done]:
    """The same, with a bar; not visible where it would stand among what is written."""
    with bar(None, file, show=visible, unit=" tokens", unit_scale=True) as progress:
        for one in done:
            progress.update(one.tokens)
            yield one


def _nothing() -> None:
    """Say nothing."""


@contextmanager
def _one_file(output: str | None, plan: InputPlan) -> Iterator[Write]:
    """Yield what writes all of a file into another one, or to standard output, at once where somebody may wait for it.

    Raises InputError for marks of brat of a file that may hold several texts.
    """

    def text_of(done: Done) -> str:
        return done.text + "".join(line for one in done.marked for line in brat_lines(*one, plan.mark))

    if plan.shown == "brat" and plan.form != "text":
        raise InputError("brat has a pair of files for each text, of which there may be several; set -o FOLDER/")
    if output is None:

        def show(done: Done) -> None:
            sys.stdout.write(text_of(done))
            sys.stdout.flush()

        yield show
        return
    with open_atomic(output) as file:

        def write(done: Done) -> None:
            file.write(text_of(done).encode("utf-8", "surrogateescape"))
            file.flush()

        yield write


def _labelling(model: str, trusted: Sequence[str], shown: Shown) -> Callable[[Asked], Done]:
    """What labels blocks, in a process of its own."""
    return partial(_labelled, *_ready(model, trusted, shown))


def _labelled(tagger: Predictor, done_of: DoneOf, asked: Asked) -> Done:
    """A block labelled; one with a mistake as far as its sentences are labelled one by one."""
    plan, block = asked
    try:
        return done_of(read_block(tagger, block, plan))
    except InputError as error:
        parts = block.parts(plan.ends)
        if len(parts) == 1:
            return Done("", 0, error)
    alone = plan._replace(whole=False)
    return _up_to_mistake(_labelled(tagger, done_of, Asked(alone, part)) for part in parts)


def _up_to_mistake(parts: Iterable[Done]) -> Done:
    """What is to be written of one part after the other, as one."""
    found: list[Done] = []
    for part in parts:
        found.append(part)
        if part.wrong is not None:
            break
    marked = [one for part in found for one in part.marked]
    return Done("".join(part.text for part in found), sum(part.tokens for part in found), found[-1].wrong, marked)


def _ready(model: str, trusted: Sequence[str], shown: Shown) -> tuple[Predictor, DoneOf]:
    """The tagger, whole only where more than labels is shown, and what gives what is to be written."""
    if shown.k is None and not shown.order:
        tagger = load(model, trusted)
        return tagger, partial(_decided, tagger, shown)
    from structperc.cli.tag_candidates import candidates_of, order_of  # which need PyTorch

    whole, lines = order_of(model, trusted) if shown.k is None else candidates_of(model, trusted, shown.k)
    return whole, partial(_listed, lines)


def _listed(lines: Lines, given: TagInput) -> Done:
    return Done("".join(lines(given)), given.corpus.tokens)


def _decided(tagger: Predictor, shown: Shown, given: TagInput) -> Done:
    form = shown.form or ("jsonl" if given.plan.form == "jsonl" else "columns")
    decided, tokens = tagger.predict(given.corpus, shown.probabilities), given.corpus.tokens
    if form == "brat":
        return Done("", tokens, marked=marked_texts(given, decided, tagger.labels.scheme))
    return Done("".join(output_lines(given, decided, tagger.labels, form)), tokens)


logger = logging.getLogger("pytorch_lightning.structperc")

SUFFIXES = {"columns": ".conll", "jsonl": ".jsonl", "html": ".html", "brat": ".ann"}
MARKS = ".ann"  # files of brat beside texts, which are no input


class Job(NamedTuple):
    """A file to be labelled, and the one where that is written; of marks of brat that of a single text."""

    file: str
    target: Path


def is_folder(output: str | None) -> bool:
    """Return whether labels are to be written into a folder: one that exists, or a path that ends as one does."""
    return output is not None and (os.path.isdir(output) or output.endswith((os.sep, "/")))


def tag_files(labelling: LabelSequence, files: Sequence[str], output: str) -> None:
    """Label files, and those in folders, and write each into the folder `output`, which is made if need be.

    Each file keeps its path below the folder that was given, and its name; with a format its suffix is that of the
    format. Marks of brat are a pair NAME.txt and NAME.ann for running text and columns without documents, NAME-1.txt,
    NAME-1.ann, ... for the texts of another file. A text file that is in `output` itself gets its marks beside it.

    A file that fails is named on standard error, and the others are labelled. Raises InputError before anything is
    written if two files have one target or a file is its own, and at the end if some have failed.
    """
    labelling.shown.check()
    check_workers(labelling.workers)
    jobs = _jobs(files, Path(output), labelling.shown.form)
    written: dict[Path, str] = {}
    failed: list[InputError] = []
    for job in jobs:
        try:
            _tag(labelling, job, written)
        except InputError as error:
            failed.append(error)
            if len(jobs) > 1:
                logger.error("not labelled: %s", error)
    if len(jobs) == 1 and failed:
        raise failed[0]
    if failed:
        names = f"; the first: {failed[0]}" if len(failed) > 1 else f": {failed[0]}"
        done = len(jobs) - len(failed)
        rest = f"; {done:,} {'is' if done == 1 else 'are'} written to {output}" if done else ""
        raise InputError(f"{len(failed):,} of {len(jobs):,} files could not be labelled{names}{rest}")


def _jobs(files: Sequence[str], folder: Path, form: str | None) -> list[Job]:
    """Return the files to label, each with its target, after a check of the names."""
    jobs = [Job(str(path), _target(folder, below, form)) for path, below in _inputs(files, folder)]
    taken: dict[Path, str] = {}
    for file, target in jobs:
        if target in taken:
            raise InputError(f"{file} and {taken[target]} would both be written to {target}; rename one")
        if _is_same(target, file):
            raise InputError(f"{file}: its labels would be written in its place; set -o to another folder")
        taken[target] = file
    return jobs


def _inputs(files: Sequence[str], folder: Path) -> Iterator[tuple[Path, Path]]:
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
    return not any(part.startswith(".") for part in below.parts) and below.suffix != MARKS


def _target(folder: Path, below: Path, form: str | None) -> Path:
    """Return the file to which the labels of a file are written."""
    plain = below.with_suffix("") if below.suffix == ".gz" else below
    return folder / (plain if form is None else plain.with_suffix(SUFFIXES[form]))


def _is_same(one: Path, other: str | Path) -> bool:
    return one.exists() and os.path.exists(other) and os.path.samefile(one, other)


def _tag(labelling: LabelSequence, job: Job, written: dict[Path, str]) -> None:
    try:
        job.target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{job.target.parent}: cannot make this folder ({error.strerror or error})") from None
    check_output_path(job.target)
    brat = labelling.shown.form == "brat"
    to: Callable[[InputPlan], AbstractContextManager[Write]]
    to = partial(_pairs, job, written) if brat else partial(_whole, job)
    labelling.label(job.file, to, visible=True)


@contextmanager
def _whole(job: Job, plan: InputPlan) -> Iterator[Write]:
    """Yield what writes all of a file."""
    with open_atomic(job.target) as file:

        def write(done: Done) -> None:
            file.write(done.text.encode("utf-8", "surrogateescape"))

        yield write


@contextmanager
def _pairs(job: Job, written: dict[Path, str], plan: InputPlan) -> Iterator[Write]:
    """Yield what writes a pair of files for each text."""
    numbers = count(1)
    one = plan.form == "text" or (plan.form == "columns" and not plan.above.marked)

    def write(done: Done) -> None:
        for marks in done.marked:
            target = job.target
            if not one:
                target = target.with_stem(f"{target.stem}-{next(numbers)}")
            text = target.with_suffix(".txt")
            before = plan.mark if _is_same(text, job.file) else 0
            if _is_same(text, job.file) and plan.form != "text":
                raise InputError(f"{job.file}: its text would be written in its place; set -o to another folder")
            if written.setdefault(target, job.file) != job.file:
                raise InputError(f"{job.file}: {target} holds marks of {written[target]} already; rename one")
            if not _is_same(text, job.file):
                write_lines(text, [marks.text])
            write_lines(target, brat_lines(*marks, before))

    yield write
