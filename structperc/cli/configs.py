"""structperc configs [NAME]: the configurations that come with the package."""

from collections.abc import Iterator
from pathlib import Path

from structperc.cli.arguments import Command, CommandParser
from structperc.errors import InputError
from structperc.packaged_configs import PREFIX, packaged, packaged_names
from structperc.reports.tables import text_table


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("configs", "List the configurations that come with the package, or show one.")
    made.add_argument("name", nargs="?", default="", help="of one, such as pkg:quickstart; or how names begin: best")
    return made


def run(arguments: list[str]) -> None:
    """Print names with their first lines, or the text of the configuration of this name."""
    name = parser().parse_args(arguments).name
    if name.startswith(PREFIX):
        print(Path(packaged(name)).read_text(encoding="utf-8"), end="")
        return
    for line in listing(name):
        print(line)


def listing(beginning: str) -> Iterator[str]:
    """Yield a line for each name that begins so, with what the file says of itself. Raises InputError for none."""
    names = [name for name in packaged_names() if name.startswith(beginning)]
    if not names:
        raise InputError(f"configs: no name begins with {beginning!r}; structperc configs lists all")
    files = {name: packaged(PREFIX + name) for name in names}
    yield from text_table([[PREFIX + name, _about(file)] for name, file in files.items()], "<<")


def _about(file: str) -> str:
    first, *_ = Path(file).read_text(encoding="utf-8").splitlines()
    return first.removeprefix("# ")


CONFIGS = Command("configs", "[NAME]", "configurations that come with the package", run)
