"""Several files labelled by a saved model: which they are, where their labels go, and what fails."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from structperc.analysis.tag_input import InputPlan
from structperc.analysis.tag_output import brat_lines
from structperc.cli.tag_file import Done, LabelSequence, Write, check_workers
from structperc.data.output import check_output_path, open_atomic, write_lines
from structperc.data.text_files import expand_path
from structperc.errors import InputError

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
