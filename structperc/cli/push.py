"""structperc push MODEL REPOSITORY: a saved model, with its card, on the hub."""

from structperc.cli.arguments import Command, CommandParser, ModelArgument


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser(
        "push", "Put a saved model and its card, README.md, into a repository of the Hugging Face hub."
    )
    what = "folder of a saved model, or of a run, e.g. runs/quickstart/1"
    made.add_argument("model", action=ModelArgument, help=what)
    made.add_argument("repository", help="id of the repository, such as me/tagger; it is made if there is none")
    made.add_argument("--private", action="store_true", default=None, help="a new repository is not public")
    made.add_argument("--token", help="of the hub; default: HF_TOKEN, or that of `hf auth login`")
    made.add_argument("--licence", metavar="ID", help="for the card, such as apache-2.0; default: as the card has it")
    languages = "for the card, such as en; again for a second language"
    made.add_argument("--language", metavar="CODE", action="append", default=[], help=languages)
    made.add_argument("--branch", help="of the repository; default: main")
    made.add_argument("--message", default="A saved model", help="of the commit")
    return made


def run(arguments: list[str]) -> None:
    """Check the model, push its files in one commit, and print the address of the commit."""
    options = parser().parse_args(arguments)

    from structperc.taggers.hub import push_folder

    told = {"licence": options.licence, "language": options.language, "commit_message": options.message}
    place = {"private": options.private, "token": options.token, "branch": options.branch}
    print(push_folder(options.model, options.repository, **told, **place))


PUSH = Command("push", "MODEL REPOSITORY", "a saved model and its card on the hub", run)
