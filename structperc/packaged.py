"""Configurations that come with the package, by name: pkg:quickstart, pkg:best/entities, pkg:studies/smoke.

They are the files of the folder `configs` at the top of the repository, which is a folder of an installed package.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from structperc.errors import InputError
from structperc.spelling import did_you_mean

PREFIX = "pkg:"
ENDING = ".yaml"
PACKAGE = Path(__file__).parent
PLACES = (PACKAGE / "configs", PACKAGE.parent / "configs")  # when installed, and in a repository


def packaged_root() -> Path:
    """Return the folder of these configurations. Raises InputError for a package without them."""
    for place in PLACES:
        if (place / f"quickstart{ENDING}").is_file():
            return place
    raise InputError(f"{PACKAGE}: the package has lost its folder of configurations; install it again")


def packaged_names() -> list[str]:
    """Return the names of all packaged configurations, without the prefix, in their order."""
    root = packaged_root()
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.rglob(f"*{ENDING}"))


def packaged(name: str) -> str:
    """Return the file of a packaged configuration, pkg:NAME or pkg:NAME.yaml; any other name as it is.

    Raises InputError, with names that are near, for one that there is not.
    """
    if not name.startswith(PREFIX):
        return name
    wanted = name.removeprefix(PREFIX).removesuffix(ENDING)
    names = packaged_names()
    if wanted not in names:
        raise InputError(f"{name}: {_nearest(wanted, names)} (structperc configs lists all)")
    return str(packaged_root() / f"{wanted}{ENDING}")


def packaged_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command with the files in place of the names after -c and --config."""
    return [*_replaced(arguments)]


def _replaced(arguments: Sequence[str]) -> Iterator[str]:
    for before, one in zip(["", *arguments], arguments, strict=False):
        option, equals, value = one.partition("=")
        if equals and option == "--config":
            yield f"{option}={packaged(value)}"
        else:
            yield packaged(one) if before in ("-c", "--config") else one


def is_packaged(file: str | Path) -> bool:
    """Return whether a file is one of the packaged configurations."""
    return Path(file).resolve().is_relative_to(packaged_root().resolve())


def _nearest(wanted: str, names: Sequence[str]) -> str:
    """What to say of a name that there is not."""
    last = wanted.rpartition("/")[2]
    same = [name for name in names if name.rpartition("/")[2] == last]
    several = ", ".join(PREFIX + name for name in same[:5])
    guess = f"; did you mean {several}?" if same else did_you_mean(PREFIX + wanted, [PREFIX + name for name in names])
    return f"there is no such packaged configuration{guess}"
