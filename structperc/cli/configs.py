"""structperc configs [NAME]: the configurations that come with the package."""

from argparse import Namespace
from pathlib import Path

from structperc.cli.arguments import CommandParser, command
from structperc.errors import InputError
from structperc.packaged_configs import PREFIX, packaged, packaged_names
from structperc.reports.tables import text_table


def _arguments(parser: CommandParser) -> None:
    name = "of one, such as pkg:quickstart; or the beginning of names: best"
    parser.add_argument("name", nargs="?", default="", help=name)


@command("[NAME]", "configurations that come with the package", _arguments)
def configs(options: Namespace) -> None:
    """List the configurations that come with the package, or show one."""
    if options.name.startswith(PREFIX):
        print(Path(packaged(options.name)).read_text(encoding="utf-8"), end="")
        return
    names = [PREFIX + name for name in packaged_names() if name.startswith(options.name)]
    if not names:
        raise InputError(f"configs: no name begins with {options.name!r}; structperc configs lists all")
    first_lines = [Path(packaged(name)).read_text(encoding="utf-8").partition("\n")[0] for name in names]
    rows = [[name, line.removeprefix("# ")] for name, line in zip(names, first_lines, strict=True)]
    print("\n".join(text_table(rows, "<<")))
