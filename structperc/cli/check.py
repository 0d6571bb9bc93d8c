"""structperc check FILE [FILE ...]: contents of labelled files, and problems in them."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from structperc.cli.arguments import CommandParser, add_data_options, command, read_options
from structperc.reports.tables import text_table
from structperc.spelling import counted, visible

if TYPE_CHECKING:
    from structperc.data.survey import Survey

WIDTH = 80
SHOWN = 5  # examples of a kind
ROWS = 20  # of a table


def _arguments(parser: CommandParser) -> None:
    files = "CoNLL columns, CoNLL-U, JSON lines, CSV, parquet or saved folders, that for training first"
    parser.add_argument("files", nargs="+", metavar="file", help=files)
    add_data_options(parser)


@command("FILE [FILE ...]", "columns, labels, what is odd in data files", _arguments)
def check(options: Namespace) -> None:
    """Show the contents of labelled files: columns, labels, their scheme, what is illegal or repeated."""
    from structperc.data.survey import survey_file

    surveys = [survey_file(file, read_options(options)) for file in options.files]
    for number, one in enumerate(surveys):
        for line in (*file_lines(one, training=number == 0), ""):
            print(line)
    for other in surveys[1:]:
        for line in comparison_lines(surveys[0], other):
            print(line)


# -- one file -------------------------------------------------------------------------------------------------


def file_lines(found: "Survey", training: bool) -> Iterator[str]:
    """Yield lines about a file: its size, its columns, its labels and its repeated sentences."""
    yield cut(f"{found.file}: {format_name(found)}")
    yield f"  {found.size}"
    yield from map(cut, column_lines(found))
    for remark in found.remarks(training):
        yield from wrap(visible(remark), WIDTH, initial_indent="  note: ", subsequent_indent="    ")
    if found.labelled:
        yield from label_lines(found)
    else:
        yield "  no column of labels"
    yield from span_lines(found)
    yield from repetitions(found)


def format_name(found: "Survey") -> str:
    """Return what the file is."""
    if found.table is not None:
        return found.table.format
    return "columns" if found.tags is None else "CoNLL-U"


def span_lines(found: "Survey") -> Iterator[str]:
    """Yield how many spans of characters there are, which of them do not fit the tokens, and what to set."""
    report = found.table.spans if found.table is not None else None
    if report is None:
        return
    conflicts = f"{len(report.conflicts):,} of them {'does' if len(report.conflicts) == 1 else 'do'} not fit the tokens"
    yield f"  spans: {report.total:,}, {conflicts}"
    for place, misfit in report.conflicts[:ROWS]:
        yield f"    {Path(place).name}: {misfit.message}"
    if len(report.conflicts) > ROWS:
        yield f"    and {len(report.conflicts) - ROWS:,} more"
    if (unit := report.text_options.offsets) != "characters":
        from structperc.data.annotations import COUNTED

        yield f"    their offsets count {COUNTED[unit].rstrip(',')}: set data.offsets: {unit}"
    if (tokens := report.text_options.tokens) != "conll":
        yield f"    more of them fit the tokens of {tokens}: set data.tokens: {tokens}"
    if report.conflicts:
        yield f"    {report.advice()}"
    if report.joined:
        yield f"  spans that cross the end of a sentence, in {len(report.joined):,} texts: {report.joined[0]}"


def column_lines(found: "Survey") -> Iterator[str]:
    """Yield for each column its number, its name, how many different strings it holds and the most frequent ones."""
    rows = [["column", "name", "distinct", "most frequent"]]
    for number, role in enumerate(found.roles, 1):
        if role != "_":
            counts = found.counts(role)
            most = " ".join(value for value, _ in counts.most_common(10))
            rows.append([str(number), cut(role, 12), f"{len(counts):,}", most])
    return text_table(rows, "><><", indent="  ")


def label_lines(found: "Survey") -> Iterator[str]:
    """Yield the scheme, illegal labels with their lines, and counts by type or by label."""
    labels = found.corpus.columns["label"]
    if found.scheme == "none":
        yield f"  labels: {len(set(labels)):,}, without segments (scheme none)"
        yield from table("label", {"tokens": found.counts("label")})
        return
    segments, tokens = found.types()
    numbers = f"{counted(segments.total(), 'segment')}, {counted(len(found.illegal), 'label')} illegal in it"
    yield f"  labels: scheme {found.scheme}, {numbers}"
    for t in found.illegal[:SHOWN]:
        yield cut(f"    {found.place} {found.line(t)}: {labels[t]!r} is read as {found.repaired[t]!r}")
    if len(found.illegal) > SHOWN:
        yield f"    and {len(found.illegal) - SHOWN:,} more"
    yield from table("type", {"segments": segments, "tokens": tokens})


def table(head: str, columns: dict[str, Counter[str]]) -> Iterator[str]:
    """Yield a table of counts with a line for each name in the first column of counts, most frequent first."""
    first, *_ = columns.values()
    if not first:
        return
    rows = [[head, *columns]]
    for name, _ in first.most_common(ROWS):
        rows.append([cut(name or "(no type)", 24), *(f"{counts[name]:,}" for counts in columns.values())])
    yield from text_table(rows, indent="    ")
    if len(first) > ROWS:
        yield f"    and {len(first) - ROWS:,} more"


def repetitions(found: "Survey") -> Iterator[str]:
    """Yield how many sentences occur more than once, and where the first of them do."""
    repeated = {words: at for words, at in sentences(found).items() if len(at) > 1}
    if repeated:
        further = sum(len(at) - 1 for at in repeated.values())
        yield f"  sentences that stand more than once: {len(repeated):,}, {further:,} further times"
        lines = f"{found.place}s"
        yield from place_lines((f"{lines} {at[0]} and {at[1]}", words) for words, at in repeated.items())


# -- two files ------------------------------------------------------------------------------------------------


def comparison_lines(first: "Survey", other: "Survey") -> Iterator[str]:
    """Yield lines about what a file has in common with the first one, and what only one of them has."""
    here, there = Path(other.file), Path(first.file)
    named = (here.name, there.name) if here.name != there.name else (here, there)
    yield cut("{} against {}".format(*named))
    before = sentences(first)
    shared = {words: at for words, at in sentences(other).items() if words in before}
    yield f"  sentences that stand in both: {sum(map(len, shared.values())):,} of {len(other.corpus):,}"
    line = other.place
    yield from place_lines((f"{line} {at[0]}, there {before[words][0]}", words) for words, at in shared.items())
    known = set(first.corpus.columns["word"])
    new = sum(word not in known for word in other.corpus.columns["word"])
    yield f"  words that are new: {new / other.corpus.tokens:.1%} of the tokens"
    if first.labelled and other.labelled:
        yield from label_differences(first, other)
    yield ""


def label_differences(first: "Survey", other: "Survey") -> Iterator[str]:
    """Yield a scheme that is another one, and labels or types of segments that only the second file has."""
    if other.scheme != first.scheme:
        yield f"  labels of another scheme: {other.scheme} here, {first.scheme} there"
    if "none" in (first.scheme, other.scheme):
        what, there, here = "labels", first.counts("label"), other.counts("label")
    else:
        what, there, here = "types", first.types()[0], other.types()[0]
    new = [f"{name or '(no type)'} ({count:,})" for name, count in here.most_common() if name not in there]
    yield cut(f"  {what} that are new: {', '.join(new) or 'none'}")


def sentences(found: "Survey") -> dict[tuple[str, ...], list[int]]:
    """Return the line numbers at which each sentence begins, by its words."""
    lines: dict[tuple[str, ...], list[int]] = {}
    corpus = found.corpus
    for start, words in zip(corpus.sentences, corpus.sentences_of(corpus.columns["word"]), strict=False):
        lines.setdefault(tuple(words), []).append(found.line(start))
    return lines


# -- lines ----------------------------------------------------------------------------------------------------


def place_lines(found: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    """Yield the first few places, with the words that stand there."""
    for place, words in islice(found, SHOWN):
        yield cut(f"    {place}: {' '.join(words)}")


def cut(text: str, width: int = WIDTH) -> str:
    """Return the text, without its end where it is longer than `width`."""
    return text if len(text) <= width else f"{text[: width - 3]}..."
