"""Configurations that come with the package, by name: pkg:quickstart, pkg:best/entities, pkg:studies/smoke.

They are the files of the folder `configs` at the top of the repository, which is a folder of an installed package.
"""

from collections.abc import Sequence
from pathlib import Path

from structperc.errors import InputError
from structperc.spelling import did_you_mean

PREFIX = "pkg:"
ENDING = ".yaml"
MOST = 5  # names that a message suggests
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
        guess = suggest_packaged(wanted) or did_you_mean(PREFIX + wanted, [PREFIX + name for name in names])
        raise InputError(f"{name}: there is no such packaged configuration{guess} (structperc configs lists all)")
    return str(packaged_root() / f"{wanted}{ENDING}")


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the configurations after -c and --config, those of the package as files, and the other arguments.

    Example:
        >>> split_arguments(["fit", "-c", "own.yaml", "--trainer.max_epochs=3", "--config=more.yaml", "-c=last.yaml"])
        (['own.yaml', 'more.yaml', 'last.yaml'], ['fit', '--trainer.max_epochs=3'])
    """
    files: list[str] = []
    others: list[str] = []
    left = iter(arguments)
    for one in left:
        if one in ("-c", "--config"):
            named = next(left, None)
        else:
            named = next(
                (one.removeprefix(start) for start in ("--config=", "-c=", "-c") if one.startswith(start)), None
            )
        if named:
            files.append(packaged(named))
        else:  # also -c with nothing after it, which the parser refuses
            others.append(one)
    return files, others


def is_packaged(file: str | Path) -> bool:
    """Return whether a file is one of the packaged configurations."""
    return Path(file).resolve().is_relative_to(packaged_root().resolve())


def packaged_named(name: str) -> list[str]:
    """Return the packaged configurations that are named like a file, such as pkg:quickstart for quickstart.yaml."""
    last = name.removesuffix(ENDING).rpartition("/")[2]
    return [PREFIX + one for one in packaged_names() if one.rpartition("/")[2] == last]


def suggest_packaged(name: str) -> str:
    """Return "; did you mean pkg:NAME?" with the configurations that are named like a file, or "" without any."""
    found = packaged_named(name)[:MOST]
    return f"; did you mean {', '.join(found)}?" if found else ""
