"""Where sequences come from, as Lightning data modules: tables in files, and `datasets` that are in memory."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from structperc.batching.sequence_data import SPLITS, InFiles, SequenceData, check_splits, split_file
from structperc.data.annotations import Cutting, Misaligned, Offsets, Overlaps
from structperc.data.tables import Reader
from structperc.errors import InputError

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger("pytorch_lightning.structperc")
NAMES = {"train": ("train",), "dev": ("dev", "validation"), "test": ("test",)}  # of splits that nobody names


class Table(SequenceData):
    """Tables in a folder: parquet, JSON lines, CSV, or what `datasets.Dataset.save_to_disk` has written.

    Args:
        path: folder; environment variables are expanded.
        files: file, or saved folder, of each split, such as {train: train.parquet, dev: dev.jsonl.gz}.
        columns: column of each role: {word: tokens, label: ner_tags} for a sentence, in lists or between spaces, in
            each row; with `sentence`, whose value changes where a sentence begins, for a token in each row (an empty
            name: an empty row of CSV ends a sentence); {text: text, spans: entities} for a document of running text in
            each row, whose spans have start, end and label.
            `document` tells the rows of different documents apart.
        label_names: names of labels kept as bare numbers, by role.
        tokens: how running text is cut: "conll" or "ud", see `structperc.text`.
        sentences: where its sentences begin: "rules", "lines" or "one"; never inside of a span.
        misaligned: what becomes of spans that do not begin and end as tokens do: "error" lists them, "expand" extends
            them to whole tokens, "skip" leaves them out.
        overlaps: what becomes of spans that share a token: "error" lists them, "longest" keeps the longest.
        offsets: what those of spans count: "characters", "utf-16" code units, as JavaScript does, or "utf-8" bytes.
        heading: whether the first row of CSV names the columns; else these are "1", "2", ...
        encoding: of JSON and CSV.
        options: those of `SequenceData`.
    """

    def __init__(
        self,
        path: str,
        files: dict[str, str],
        columns: dict[str, str],
        label_names: dict[str, list[str]] | None = None,
        tokens: str = "conll",
        sentences: str = "rules",
        misaligned: Misaligned = "error",
        overlaps: Overlaps = "error",
        offsets: Offsets = "characters",
        heading: bool = True,
        encoding: str = "utf-8",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        check_splits("data.files", files)
        self.path, self.files, self.encoding = path, files, encoding
        cutting = Cutting(tokens, sentences, misaligned, overlaps, offsets)
        self.reader = Reader(columns, label_names or {}, cutting, self.reading.labels or self.scheme, heading)
        self.reader.check("data")
        self.in_files = InFiles(path, files, {**self.reader.options(), "encoding": encoding})

    def read(self, split: str) -> "tuple[str, Dataset] | None":
        """Return the file's name and the rows of the split, or None if `files` names no file for it."""
        from structperc.data.table_files import read_table  # which needs `datasets`

        file = split_file(self.path, self.files, split)
        if file is None:
            return None
        return str(file), read_table(file, self.reader, self.encoding)


class InMemory(SequenceData):
    """Data sets of the package `datasets` that a program holds; from Python alone.

    Args:
        data: a `DatasetDict` or another mapping, or one `Dataset`, the training data. An `IterableDataset` is read to
            its end and kept, which is said.
        columns: column of each role, see `Table`.
        splits: the name in `data` of each split, such as {train: train, dev: validation}. Default: train, dev or
            validation, and test, where there are such.
        label_names: names of labels kept as bare numbers, by role; those of class labels are known.
        tokens, sentences, misaligned, overlaps, offsets: how running text and its spans are read, see `Table`.
        options: those of `SequenceData`.
    """

    def __init__(
        self,
        data: Any,
        columns: dict[str, str],
        splits: dict[str, str] | None = None,
        label_names: dict[str, list[str]] | None = None,
        tokens: str = "conll",
        sentences: str = "rules",
        misaligned: Misaligned = "error",
        overlaps: Overlaps = "error",
        offsets: Offsets = "characters",
        **options: Any,
    ) -> None:
        from datasets import Dataset, IterableDataset

        super().__init__(**options)
        held = data if isinstance(data, Mapping) else {"train": data}
        if splits is None:
            splits = {split: name for split in SPLITS for name in NAMES[split] if name in held}
        check_splits("splits", splits)
        if missing := [name for name in splits.values() if name not in held]:
            raise InputError(f"splits: no {missing} among {list(held)}; name those that are there")
        for name in splits.values():
            if not isinstance(held[name], Dataset | IterableDataset):
                raise InputError(f"data: {name!r} is a {type(held[name]).__name__}; give a datasets.Dataset")
        self.data = {split: held[name] for split, name in splits.items()}
        self.splits = splits
        cutting = Cutting(tokens, sentences, misaligned, overlaps, offsets)
        self.reader = Reader(columns, label_names or {}, cutting, self.reading.labels or self.scheme)
        self.reader.check("data")

    def read(self, split: str) -> "tuple[str, Dataset] | None":
        """Return the split's name in the data and its rows, or None if there is no such split."""
        from datasets import IterableDataset

        from structperc.data.table_files import dataset_rows

        if split not in self.data:
            return None
        data, name = self.data[split], self.splits[split]
        if isinstance(data, IterableDataset):
            logger.info("%s: a stream, which is read to its end and kept in memory", name)
        return name, dataset_rows(data, self.reader, name)
