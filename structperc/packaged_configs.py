"""Configurations that come with the package, by name: pkg:quickstart, pkg:best/entities, pkg:studies/smoke.

They are the files of the folder `configs` of the repository, which is part of the installed package.
"""

from collections.abc import Sequence
from pathlib import Path

from structperc.errors import InputError
from structperc.spelling import did_you_mean

PREFIX = "pkg:"
SUFFIX = ".yaml"
MAX_SUGGESTIONS = 5
PACKAGE = Path(__file__).parent
PLACES = (PACKAGE / "configs", PACKAGE.parent / "configs")  # when installed, and in a repository


def packaged_root() -> Path:
    """Return the folder of these configurations. Raises InputError if it is missing."""
    for place in PLACES:
        if (place / f"quickstart{SUFFIX}").is_file():
            return place
    raise InputError(f"{PACKAGE}: the folder of configurations is missing; install the package again")


def packaged_names() -> list[str]:
    """Return the names of all packaged configurations, without the prefix, sorted."""
    root = packaged_root()
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.rglob(f"*{SUFFIX}"))


def packaged_path(name: str) -> str:
    """Return the file of a packaged configuration, pkg:NAME or pkg:NAME.yaml; any other name unchanged.

    Raises InputError, with similar names, for an unknown one.
    """
    if not name.startswith(PREFIX):
        return name
    wanted = name.removeprefix(PREFIX).removesuffix(SUFFIX)
    names = packaged_names()
    if wanted not in names:
        guess = suggest_packaged(wanted) or did_you_mean(PREFIX + wanted, [PREFIX + name for name in names])
        raise InputError(f"{name}: unknown packaged configuration{guess} (structperc configs lists all)")
    return str(packaged_root() / f"{wanted}{SUFFIX}")


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
        starts = [start for start in ("--config=", "-c=", "-c") if one.startswith(start)]
        named = next(left, None) if one in ("-c", "--config") else one.removeprefix(starts[0]) if starts else None
        if named:
            files.append(packaged_path(named))
        else:  # also -c without a value, an error of the parser
            others.append(one)
    return files, others


def is_packaged(file: str | Path) -> bool:
    """Return True if a file is one of the packaged configurations."""
    return Path(file).resolve().is_relative_to(packaged_root().resolve())


def packaged_named(name: str) -> list[str]:
    """Return the packaged configurations with the name of a file, such as pkg:quickstart for quickstart.yaml."""
    last = name.removesuffix(SUFFIX).rpartition("/")[2]
    return [PREFIX + one for one in packaged_names() if one.rpartition("/")[2] == last]


def suggest_packaged(name: str) -> str:
    """Return "; did you mean pkg:NAME?" with the configurations of `packaged_named`; "" without any."""
    found = packaged_named(name)[:MAX_SUGGESTIONS]
    return f"; did you mean {', '.join(found)}?" if found else ""
