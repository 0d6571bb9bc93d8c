"""structperc study FILE: each configuration that the file lists, with each seed, and one table."""

from structperc.cli.arguments import Command, CommandParser
from structperc.cli.output import print_lines


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("study", "Train a list of configurations over seeds and write one table.")
    made.add_argument("file", help="a study, such as configs/studies/embedded.yaml")
    made.add_argument("--root", metavar="FOLDER", help="of all runs and the table; default: runs/ and the file's name")
    return made


def run(arguments: list[str]) -> None:
    """Train the rows of the study, and print the progress and the outcome."""
    options = parser().parse_args(arguments)

    from structperc.experiments import study
    from structperc.training.run_folders import resume_hint

    with resume_hint(lambda: ["study", *arguments]):
        print_lines(study(options.file, options.root))


STUDY = Command("study", "FILE", "train configurations over seeds, one table", run)
