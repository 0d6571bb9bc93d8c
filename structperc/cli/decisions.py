"""structperc decisions MODEL FILE: which token was decided when, with which label and score."""

from structperc.cli.arguments import Command, CommandParser, add_labelled_file, load_guided, reading
from structperc.errors import InputError


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("decisions", "Show how a guided tagger decides sentences, step by step.")
    add_labelled_file(made)
    which = made.add_mutually_exclusive_group()
    which.add_argument("--sentence", nargs="+", type=int, metavar="N", help="numbers of those to show, from 1")
    which.add_argument("--n", type=int, default=10, help="show the first n sentences (default 10)")
    made.add_argument("--html", metavar="FILE", help="write a page for the browser, too")
    return made


def run(arguments: list[str]) -> None:
    """Load the model, read the file, write the page if asked for, and print how its sentences were decided."""
    options = parser().parse_args(arguments)

    from structperc.analysis.decision_order import DECISION_NOTES, decision_html, decision_lines, decisions
    from structperc.analysis.input_files import read_corpus
    from structperc.data.output import check_output_path, write_lines
    from structperc.reports.html_pages import page_title

    check_output_path(options.html)
    if options.n < 1:
        raise InputError(f"--n must be >= 1, got {options.n}")
    read = reading(options)
    tagger = load_guided(options.model, options.trust)
    tagger.check_unit(read.unit or tagger.unit)
    corpus = read_corpus(tagger, options.file, read)
    numbers = options.sentence or range(1, min(options.n, len(corpus)) + 1)
    found = decisions(tagger, corpus, [number - 1 for number in numbers])
    if options.html is not None:
        title, notes = page_title("Order of decisions", options.model, options.file)
        write_lines(options.html, decision_html(found, title, notes, tagger.labels.type_names))
    for one in found:
        print("\n".join([*decision_lines(one), ""]))
    for line in DECISION_NOTES:
        print(line)


DECISIONS = Command("decisions", "MODEL FILE", "in which order a guided tagger decided", run)
