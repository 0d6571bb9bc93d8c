"""Names of configurations: files, those of the package (pkg:best/entities), and rows of studies (FILE#ROW).

The files of the package are those of the folder `configs` of the repository, which is part of the installed package.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from structperc.errors import InputError
from structperc.spelling import did_you_mean

PREFIX = "pkg:"
ROW = "#"  # between a study and the name of its row
SUFFIX = ".yaml"
MAX_SUGGESTIONS = 5
MAX_FOLDER_NAME = 150  # characters
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

    The row in pkg:NAME#ROW follows the file. Raises InputError, with similar names, for an unknown file.
    """
    if not name.startswith(PREFIX):
        return name
    file, row = split_row(name)
    wanted = file.removeprefix(PREFIX).removesuffix(SUFFIX)
    names = packaged_names()
    if wanted not in names:
        guess = suggest_packaged(wanted) or did_you_mean(PREFIX + wanted, [PREFIX + name for name in names])
        raise InputError(f"{name}: unknown packaged configuration{guess} (structperc configs lists all)")
    return str(packaged_root() / f"{wanted}{SUFFIX}") + ("" if row is None else ROW + row)


def split_row(name: str) -> tuple[str, str | None]:
    """Return the file and the row of FILE#ROW; any other name with None.

    Example:
        >>> split_row("study.yaml#margin")
        ('study.yaml', 'margin')
    """
    file, mark, row = name.partition(ROW)
    return file, row if mark else None


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the configurations after -c and --config, those of the package as files, and the other arguments.

    `--row ROW` after a study is a part of its name: FILE#ROW. Raises InputError for a row without a study before it.

    Example:
        >>> split_arguments(["fit", "-c", "own.yaml", "--trainer.max_epochs=3", "--config=more.yaml", "-c=last.yaml"])
        (['own.yaml', 'more.yaml', 'last.yaml'], ['fit', '--trainer.max_epochs=3'])
    """
    files: list[str] = []
    others: list[str] = []
    left = iter(arguments)
    for one in left:
        start = next((start for start in ("--config=", "--row=", "-c=", "-c") if one.startswith(start)), None)
        named = next(left, None) if one in ("-c", "--config", "--row") else one.removeprefix(start) if start else None
        if named and one.startswith("--row"):
            if not files:
                raise InputError(f"--row {named}: give the study before it, as in -c study.yaml --row {named}")
            files[-1] += ROW + named
        elif named:
            files.append(packaged_path(named))
        else:  # also -c without a value, an error of the parser
            others.append(one)
    return files, others


def packaged_named(name: str) -> list[str]:
    """Return the packaged configurations with the name of a file, such as pkg:quickstart for quickstart.yaml.

    Those whose folder or file has the name of the folder come first, and rows of studies after files.
    """
    from yaml import safe_load

    last = name.removesuffix(SUFFIX).rpartition("/")[2]
    names = packaged_names()
    texts = {one: (packaged_root() / f"{one}{SUFFIX}").read_text(encoding="utf-8") for one in names}
    rows = [(one, row) for one, text in texts.items() if "\nrows:" in text for row in safe_load(text)["rows"]]
    found = [one for one in names if one.rpartition("/")[2] == last]
    found += [one + ROW + row for one, row in rows if row == last]
    folder = name.rpartition("/")[0].rpartition("/")[2]
    return [PREFIX + one for one in sorted(found, key=lambda one: folder not in one)]


def suggest_packaged(name: str) -> str:
    """Return "; did you mean pkg:NAME?" with the configurations of `packaged_named`; "" without any."""
    found = packaged_named(name)[:MAX_SUGGESTIONS]
    return f"; did you mean {', '.join(found)}?" if found else ""


def name_of(configuration: str) -> str:
    """Return the name of the runs of a configuration: the path of its file without the ending, and its row if any.

    The path begins below the folder "configs", if there is one in it.
    """
    file, row = split_row(configuration)
    path, packaged = Path(file).with_suffix(""), packaged_root().resolve()
    if path.resolve().is_relative_to(packaged):
        path = path.resolve().relative_to(packaged)
    else:
        path = Path(*path.parts[path.parts.index("configs") + 1 :]) if "configs" in path.parts else Path(path.name)
    return str(path if row is None else path / folder_name(row))


def folder_name(name: str) -> str:
    """Return a distinct folder name that is valid in a path, not hidden and not too long."""
    quoted = quote(name, safe=" ,=+-_.[]{}()'")
    quoted = f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
    if len(quoted) <= MAX_FOLDER_NAME:
        return quoted
    return f"{quoted[:MAX_FOLDER_NAME]}-{sha256(quoted.encode()).hexdigest()[:8]}"
