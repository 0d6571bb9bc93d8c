"""Commands for data files: check (contents, doubtful labels), convert (spans), vectors (of words, and clusters)."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from structperc.cli.arguments import FILE, Command, CommandParser, add_data_options, command, read_options, refuse
from structperc.cli.messages import configuration_advice
from structperc.cli.train import parse_with_configuration
from structperc.errors import InputError
from structperc.reports.tables import text_table
from structperc.spelling import counted, visible

if TYPE_CHECKING:
    from structperc.data.survey import Survey

WIDTH = 80
MAX_EXAMPLES = 5
DEFAULTS = 10, 1, 100  # folds, rounds and contradictions to print
MAX_ROWS = 20  # rows of a table


def check_parser() -> CommandParser:
    """Return the parser of the arguments of check that fit does not have."""
    parser = CommandParser(
        "check",
        "Show the contents of labelled files: columns, labels, their scheme, what is illegal or repeated; with "
        "--label-errors, list labels that models trained without them contradict: possible errors of annotation.",
        epilog="The report of label errors ends with the F1 of the models on sentences that they were not trained on. "
        "Below 70 most contradictions are errors of the models: give more text, or a configuration with a higher "
        "score. Its further options are those of fit, such as --trainer.max_epochs=20: structperc fit --help.",
    )
    files = "CoNLL columns, CoNLL-U, tables, or folders of annotation tools, that for training first"
    parser.add_argument("files", type=FILE, nargs="*", metavar="file", help=files)
    add_data_options(parser)
    errors = "list labels of the training data of a configuration that may be wrong"
    parser.add_argument("--label-errors", action="store_true", help=errors)
    config = "configuration of --label-errors, as in fit"
    parser.add_argument("-c", "--config", action="append", default=[], metavar="FILE", help=config)
    parser.add_argument("--folds", type=int, metavar="N", help="parts of the data (default 10)")
    parser.add_argument("--rounds", type=int, metavar="N", help="splits into folds (default 1)")
    parser.add_argument("-n", type=int, metavar="N", help="contradictions to print (default 100)")
    parser.add_argument("--csv", metavar="FILE", help="write all contradictions")
    rows = "write the sentences with their spans and contradictions as JSON lines, which convert reads"
    parser.add_argument("--json", metavar="FILE", help=rows)
    return parser


def _check(arguments: list[str]) -> None:
    parser = check_parser()
    options, rest = parse_with_configuration(parser, arguments)
    if options.label_errors:
        if options.n is not None and options.n < 0:
            parser.error(f"-n must be >= 0, got {options.n}")
        if options.files or not options.config:
            parser.error("--label-errors reads the training data of a configuration: set -c FILE, without other files")
        with configuration_advice():
            _label_errors(options, rest)
    elif not options.files:
        parser.error("name a file, or set --label-errors -c FILE")
    else:
        refuse("check", options, ("config", "folds", "rounds", "n", "csv", "json"), "is of --label-errors")
        parser.start(_show_contents, arguments)


CHECK = Command("check", "FILE [FILE ...]", "columns, labels, what is odd in data files", _check, check_parser)


def _show_contents(options: Namespace) -> None:
    """Print the contents of labelled files."""
    from structperc.data.survey import inspect_file

    surveys = [inspect_file(file, read_options(options)) for file in options.files]
    for number, survey in enumerate(surveys):
        for line in (*_file_lines(survey, training=number == 0), ""):
            print(line)
    for other in surveys[1:]:
        for line in _comparison_lines(surveys[0], other):
            print(line)


def _label_errors(options: Namespace, rest: list[str]) -> None:
    """Print labels of the training data of a configuration that models trained without them contradict."""
    from structperc.analysis.label_noise import CSV_HEADER, label_noise, noise_lines, noise_rows
    from structperc.data.json_data import json_line
    from structperc.data.output import check_output_path, write_lines
    from structperc.experiments.experiment import dry_run
    from structperc.reports.tables import write_csv
    from structperc.reranking.jackknife import JackKnife

    check_output_path(options.csv)
    check_output_path(options.json)
    given = options.folds, options.rounds, options.n
    folds, rounds, shown = (
        default if number is None else number for default, number in zip(DEFAULTS, given, strict=True)
    )
    program = dry_run([*(f"--config={file}" for file in options.config), *rest])
    trainer = program.config["trainer"]
    seed = program.config["seed_everything"]
    plan = JackKnife(
        folds,
        trainer["max_epochs"],
        1 if seed is False else seed,
        gradient_clip_val=trainer["gradient_clip_val"],
    )
    shared = {name: trainer[name] for name in ("accelerator", "enable_progress_bar")}
    noise = label_noise(program.model, program.datamodule, plan, rounds, **shared)  # type: ignore[arg-type]
    if options.csv is not None:
        write_csv(options.csv, CSV_HEADER, (error.row() for error in noise.contradictions))
    if options.json is not None:
        write_lines(options.json, map(json_line, noise_rows(noise.contradictions)))
    print("\n".join(noise_lines(noise, shown)))


def _file_lines(found: "Survey", training: bool) -> Iterator[str]:
    kind = "columns" if found.tags is None else "CoNLL-U"
    yield _cut(f"{found.file}: {kind if found.table is None else found.table.format}")
    yield f"  {found.size}"
    yield from map(_cut, _column_lines(found))
    for remark in found.remarks(training):
        yield from wrap(visible(remark), WIDTH, initial_indent="  note: ", subsequent_indent="    ")
    if found.labelled:
        yield from _label_lines(found)
    else:
        yield "  no column of labels"
    yield from _span_lines(found)
    yield from _repetitions(found)


def _span_lines(found: "Survey") -> Iterator[str]:
    """Yield the number of character spans, those that do not fit the tokens, and advice."""
    report = found.table.spans if found.table is not None else None
    if report is None:
        return
    conflicts = f"{len(report.conflicts):,} of them {'does' if len(report.conflicts) == 1 else 'do'} not fit the tokens"
    yield f"  spans: {report.total:,}, {conflicts}"
    for place, misfit in report.conflicts[:MAX_ROWS]:
        yield f"    {Path(place).name}: {misfit.message}"
    if len(report.conflicts) > MAX_ROWS:
        yield f"    and {len(report.conflicts) - MAX_ROWS:,} more"
    if (unit := report.text_options.offsets) != "characters":
        from structperc.data.annotations import UNITS

        yield f"    their offsets count {UNITS[unit].rstrip(',')}: set data.offsets: {unit}"
    if (tokens := report.text_options.tokens) != "conll":
        yield f"    more of them fit the tokens of {tokens}: set data.tokens: {tokens}"
    if report.conflicts:
        yield f"    {report.advice()}"
    if report.merged:
        yield f"  spans that cross the end of a sentence, in {len(report.merged):,} texts: {report.merged[0]}"


def _column_lines(found: "Survey") -> Iterator[str]:
    rows = [["column", "name", "distinct", "most frequent"]]
    for number, role in enumerate(found.roles, 1):
        if role != "_":
            counts = found.counts(role)
            most = " ".join(value for value, _ in counts.most_common(10))
            rows.append([str(number), _cut(role, 12), f"{len(counts):,}", most])
    return text_table(rows, "><><", indent="  ")


def _label_lines(found: "Survey") -> Iterator[str]:
    labels = found.corpus.columns["label"]
    if found.scheme == "none":
        yield f"  labels: {len(set(labels)):,}, without segments (scheme none)"
        yield from _table("label", {"tokens": found.counts("label")})
        return
    segments, tokens = found.types()
    numbers = f"{counted(segments.total(), 'segment')}, {counted(len(found.illegal), 'label')} illegal in it"
    yield f"  labels: scheme {found.file_scheme}, {numbers}"
    for t in found.illegal[:MAX_EXAMPLES]:
        yield _cut(f"    {found.place} {found.line(t)}: {labels[t]!r} is read as {found.repaired[t]!r}")
    if len(found.illegal) > MAX_EXAMPLES:
        yield f"    and {len(found.illegal) - MAX_EXAMPLES:,} more"
    yield from _table("type", {"segments": segments, "tokens": tokens})


def _table(head: str, columns: dict[str, Counter[str]]) -> Iterator[str]:
    first, *_ = columns.values()
    if not first:
        return
    rows = [[head, *columns]]
    for name, _ in first.most_common(MAX_ROWS):
        rows.append([_cut(name or "(no type)", 24), *(f"{counts[name]:,}" for counts in columns.values())])
    yield from text_table(rows, indent="    ")
    if len(first) > MAX_ROWS:
        yield f"    and {len(first) - MAX_ROWS:,} more"


def _repetitions(found: "Survey") -> Iterator[str]:
    repeated = {words: at for words, at in _sentences(found).items() if len(at) > 1}
    if repeated:
        further = sum(len(at) - 1 for at in repeated.values())
        yield f"  duplicate sentences: {len(repeated):,} ({counted(further, 'repetition')})"
        lines = f"{found.place}s"
        yield from _place_lines((f"{lines} {at[0]} and {at[1]}", words) for words, at in repeated.items())


def _comparison_lines(first: "Survey", other: "Survey") -> Iterator[str]:
    here, there = Path(other.file), Path(first.file)
    named = (here.name, there.name) if here.name != there.name else (here, there)
    yield _cut("{} against {}".format(*named))
    before = _sentences(first)
    shared = {words: at for words, at in _sentences(other).items() if words in before}
    yield f"  sentences in both: {sum(map(len, shared.values())):,} of {len(other.corpus):,}"
    line = other.place
    yield from _place_lines((f"{line} {at[0]}, there {before[words][0]}", words) for words, at in shared.items())
    seen = set(first.corpus.columns["word"])
    new = sum(word not in seen for word in other.corpus.columns["word"])
    yield f"  new words: {new / other.corpus.tokens:.1%} of the tokens"
    if first.labelled and other.labelled:
        yield from _label_differences(first, other)
    yield ""


def _label_differences(first: "Survey", other: "Survey") -> Iterator[str]:
    if other.file_scheme != first.file_scheme:
        yield f"  different schemes: {other.file_scheme} here, {first.file_scheme} there"
    if "none" in (first.scheme, other.scheme):
        what, there, here = "labels", first.counts("label"), other.counts("label")
    else:
        what, there, here = "types", first.types()[0], other.types()[0]
    new = [f"{name or '(no type)'} ({count:,})" for name, count in here.most_common() if name not in there]
    yield _cut(f"  new {what}: {', '.join(new) or 'none'}")


def _sentences(found: "Survey") -> dict[tuple[str, ...], list[int]]:
    """Return the numbers of the first lines of each sentence, by its words."""
    lines: dict[tuple[str, ...], list[int]] = {}
    corpus = found.corpus
    for start, words in zip(corpus.sentences, corpus.sentences_of(corpus.columns["word"]), strict=False):
        lines.setdefault(tuple(words), []).append(found.line(start))
    return lines


def _place_lines(found: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    for place, words in islice(found, MAX_EXAMPLES):
        yield _cut(f"    {place}: {' '.join(words)}")


def _cut(text: str, width: int = WIDTH) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _convert_arguments(parser: CommandParser) -> None:
    from structperc.data.annotations import TextOptions, choices
    from structperc.data.conversion import FORMATS

    parser.add_argument(
        "file", type=FILE, help="labelled file of any format, or folder of documents of an annotation tool"
    )
    parser.add_argument("--to", required=True, choices=FORMATS, help="format of the output")
    out = "output file; for brat, webanno and cas-json a folder, which gets a file for each document"
    parser.add_argument("-o", "--output", required=True, help=out)
    texts = {
        "misaligned": "spans whose edges are not token edges: refuse (default), expand to whole tokens, or drop them",
        "overlaps": "overlapping spans: refuse (default), or keep the longest or the first",
        "tokens": "tokenizer of running text; default: the one that fits most spans",
        "sentences": "sentences of running text: by rules (default), one for each line, or one for each text",
        "offsets": "unit of the offsets of spans; default: the one that fits most spans",
    }
    for name in TextOptions._fields:
        parser.add_argument(f"--{name}", choices=choices(name), help=texts[name])
    add_data_options(parser)


@command("FILE --to FORMAT", "spans from and for annotation tools", _convert_arguments)
def convert(options: Namespace) -> None:
    """Convert the spans of a labelled file, or of predictions of tag, into the format of an annotation tool."""
    from structperc.data.annotations import TextOptions
    from structperc.data.conversion import FILE_FORMATS, read_annotated, write_annotated

    given = {name: getattr(options, name) for name in TextOptions._fields}
    options_given = {name: value for name, value in given.items() if value is not None}
    unit = "document" if options.to in FILE_FORMATS else None  # not a file for each sentence
    documents = read_annotated(options.file, read_options(options)._replace(unit=unit), **options_given)
    write_annotated(options.output, documents, options.to)
    types = Counter(span.type for document in documents for span in document.spans or ())
    listed = ", ".join(f"{name} {count:,}" for name, count in types.most_common(MAX_ROWS))
    kind = "predicted spans" if documents[0].predicted else "spans"
    size = f"{counted(len(documents), 'document')}, {types.total():,} {kind}"
    print(f"{options.output}: {options.to}, {size}{': ' if listed else ''}{listed}")


def _vectors_arguments(parser: CommandParser) -> None:
    parser.add_argument("files", type=FILE, nargs="*", metavar="file", help="CoNLL columns or CoNLL-U")
    output = "write here; name vectors .safetensors, clusters as you like"
    parser.add_argument("-o", "--output", required=True, help=output)
    parser.add_argument("--width", type=int, default=100, help="numbers of a vector (default 100)")
    parser.add_argument("--window", type=int, default=2, help="words to each side that are counted (default 2)")
    parser.add_argument("--cutoff", type=int, default=3, help="minimum occurrences of a word (default 3)")
    clusters = "cluster these word vectors instead: text, .safetensors, .npy, or .bin of word2vec"
    parser.add_argument("--clusters", type=FILE, metavar="VECTORS", help=clusters)
    parser.add_argument("--levels", type=int, default=11, help="bits of a cluster's path (default 11)")
    parser.add_argument("--balanced", action="store_true", help="split in halves: clusters of the same size")
    add_data_options(parser)


@command("FILE [FILE ...]", "word vectors, and their clusters", _vectors_arguments)
def vectors(options: Namespace) -> None:
    """Train word vectors for WordEmbedding on the words of files, labelled or not; or cluster the words of vectors."""
    if options.clusters is None and options.files:
        _train_vectors(options)
    elif options.clusters is not None and not options.files:
        _cluster_vectors(options)
    else:
        raise InputError("vectors: name files with words to train vectors, or a file of vectors with --clusters")


def _train_vectors(options: Namespace) -> None:
    from structperc.data.survey import inspect_file
    from structperc.data.word_vectors import check_vectors_target, write_vectors
    from structperc.encoders.cooccurrence import cooccurrence_vectors
    from structperc.progress import bar

    check_vectors_target(options.output)
    texts = []
    for file in bar(options.files, "reading"):
        corpus = inspect_file(file, read_options(options)).corpus
        texts += corpus.sentences_of(corpus.columns["word"])
    words, table = cooccurrence_vectors(texts, options.width, options.window, options.cutoff)
    write_vectors(options.output, words, table)
    tokens = sum(map(len, texts))
    print(f"{options.output}: vectors of {len(words):,} words, width {options.width}, from {tokens:,} tokens")


def _cluster_vectors(options: Namespace) -> None:
    from structperc.data.output import check_output_path
    from structperc.features import Clusters

    check_output_path(options.output)
    clusters = Clusters.from_vectors(options.clusters, options.levels, options.balanced)
    clusters.write(options.output)
    count = len(set(clusters.paths.values()))
    print(f"{options.output}: {count:,} clusters of {len(clusters.paths):,} words, from {options.clusters}")
