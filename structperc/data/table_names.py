"""Which files are tables, by their names."""

from pathlib import Path

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
FOLDER = "folder"  # of `save_to_disk`


def kind_of_table(path: Path) -> str | None:
    """Return the form of a table, its suffix before .gz or FOLDER; None for other names."""
    if any((path / name).is_file() for name in ("dataset_info.json", "dataset_dict.json")):
        return FOLDER
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    kind = suffixes[-1].lower() if suffixes else ""
    return kind if kind in (PARQUET, *JSON, *DELIMITERS) else None
