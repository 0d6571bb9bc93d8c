"""structperc evaluate MODEL FILE: scores of a saved model on a labelled file."""

from typing import TYPE_CHECKING, Any

from structperc.cli.arguments import Command, CommandParser, add_labelled_file, reading

if TYPE_CHECKING:
    from structperc.data.corpus import Corpus
    from structperc.metrics import Evaluation
    from structperc.taggers.base import BaseTagger


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("evaluate", "Score a saved model on a labelled file, as fit scores it on development data.")
    add_labelled_file(made)
    made.add_argument("--json", metavar="FILE", help="write the scores, those by type among them")
    return made


def run(arguments: list[str]) -> None:
    """Load the model, read the file, write the scores as JSON if asked for, and print the table that fit prints."""
    options = parser().parse_args(arguments)

    from pathlib import Path

    from structperc.analysis.input_files import read_gold
    from structperc.data.output import check_output_path
    from structperc.taggers.base import BaseTagger
    from structperc.training.report import write_json

    check_output_path(options.json)
    tagger = BaseTagger.load(options.model, trusted=options.trust)
    corpus = read_gold(tagger, options.file, reading(options))
    found = scores(tagger, corpus)
    if options.json is not None:
        about = {"model": options.model, "file": options.file}
        write_json(Path(options.json), {**about, **score_record(found, corpus)})
    print(found.table())


def scores(tagger: "BaseTagger", corpus: "Corpus") -> "Evaluation":
    """Return the scores of the tagger's best labels of a corpus with gold labels."""
    import torch

    from structperc.metrics import Evaluation

    evaluation = Evaluation(tagger.gold_labels(corpus), tagger.beta).to(tagger.device)
    with torch.no_grad():
        for batch in tagger.batches(corpus):
            evaluation.update(tagger.decode(batch), batch.gold, batch.lengths, batch.sentences)
    return evaluation


def score_record(found: "Evaluation", corpus: "Corpus") -> dict[str, Any]:
    """Return scores, scores by type and the size of the corpus, as plain JSON types."""
    from structperc.training.report import by_type

    size = {"sentences": len(corpus.sentences) - 1, "tokens": corpus.tokens}
    return {**size, **found.compute(), "types": by_type(found)}


EVALUATE = Command("evaluate", "MODEL FILE", "scores of a saved model on a labelled file", run)
