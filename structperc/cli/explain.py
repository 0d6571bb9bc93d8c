"""structperc explain MODEL FILE: what non-local features changed, and by which counts."""

from structperc.cli.arguments import Command, CommandParser, add_labelled_file, reading

LENGTH = 100  # of the list of candidates, where the model decodes with the best alone


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("explain", "Show which decisions non-local features changed, and why.")
    add_labelled_file(made)
    made.add_argument("--document", type=int, help="number of the one to explain, from 1; default: all that changed")
    made.add_argument("--n", type=int, help="candidates; default: as many as the model decodes with, or 100")
    made.add_argument("--html", metavar="FILE", help="write a page for the browser, too")
    return made


def run(arguments: list[str]) -> None:
    """Load the model, read the file, write the page if asked for, and print the explanations."""
    options = parser().parse_args(arguments)

    from structperc.analysis.explanation import check_explainable, explain, explain_changed, summarise
    from structperc.analysis.explanation_report import explanation_html, explanation_lines, legend
    from structperc.analysis.input_files import read_corpus
    from structperc.data.output import check_output_path, write_lines
    from structperc.reports.html_pages import page_title
    from structperc.taggers.tagger import Tagger

    check_output_path(options.html)
    tagger = Tagger.load(options.model, trusted=options.trust)
    n = options.n if options.n is not None else (tagger.decoder.k if tagger.decoder.k > 1 else LENGTH)
    check_explainable(tagger, n)
    corpus = read_corpus(tagger, options.file, reading(options))
    if options.document is None:
        found = list(explain_changed(tagger, corpus, n))
        closing = [summarise(found, corpus).line()]
    else:
        found, closing = [explain(tagger, corpus, options.document - 1, n)], []
    if options.html is not None:
        title, notes = page_title("Changed by non-local features", options.model, options.file)
        write_lines(options.html, explanation_html(found, title, [*notes, *closing], tagger.labels.type_names))
    for explanation in found:
        print("\n".join([*explanation_lines(explanation), ""]))
    for line in (*legend(found), *closing):
        print(line)


EXPLAIN = Command("explain", "MODEL FILE", "why non-local features changed decisions", run)
