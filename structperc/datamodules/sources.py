"""Data modules for column files, treebanks, tables, the hub, the embedded corpus and data sets in memory."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from structperc.data.annotations import Misaligned, OffsetUnit, Overlaps, TextOptions
from structperc.data.conll import conllu_corpus, field_count, read_conll_corpus
from structperc.data.corpus import Corpus
from structperc.data.format_detection import first_lines
from structperc.data.read_options import DOCSTART, LineFormat, Separator
from structperc.data.synthetic import synthetic_splits
from structperc.data.tables import TableOptions, dataset_corpus, read_table
from structperc.data.tag_schemes import Scheme
from structperc.datamodules.base import SPLITS, SequenceDataModule, SplitFiles, check_splits, split_file
from structperc.errors import InputError

if TYPE_CHECKING:
    from datasets import Dataset


class Conll(SequenceDataModule):
    """CoNLL column files in a folder.

    Args:
        path: folder; environment variables are expanded, as in "${STRUCTPERC_DATA}/conll2003".
        files: file of each split, such as {train: eng.train, dev: eng.testa}.
        columns: roles of the columns in order; `word` and `label` are needed, "_" skips a column.
        docstart: first field of the lines that open a document.
        comments: drop comments, lines that begin with "#" and have another number of fields than the tokens.
        encoding: of the files.
        separator: "whitespace" (spaces and tabs), or "tab" for fields that hold spaces.
        options: those of `SequenceDataModule`.
    """

    def __init__(
        self,
        path: str,
        files: dict[str, str],
        columns: list[str],
        docstart: str = DOCSTART,
        comments: bool = False,
        encoding: str = "utf-8",
        separator: Separator = "whitespace",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        check_splits("data.files", files)
        self.path, self.files, self.columns, self.encoding = path, files, columns, encoding
        self.line_format = LineFormat(separator, comments, docstart)
        self.in_files = SplitFiles(
            path, files, {"columns": columns, **self.line_format._asdict(), "encoding": encoding}
        )

    def training_files(self) -> dict[str, Any]:
        """Return the options of all sources, with a role for each column of the training file, "_" for unread ones."""
        found = super().training_files()
        file = split_file(self.path, self.files, "train")
        width = 0 if file is None else field_count(first_lines(file, self.encoding), self.line_format)
        roles = [role or "_" for role in self.columns]
        return {**found, "columns": [*roles, *["_"] * (width - len(roles))]}

    def read(self, split: str) -> tuple[str, Corpus] | None:
        """Return the file's name and the split, or None if `files` names no file for it."""
        file = split_file(self.path, self.files, split)
        if file is None:
            return None
        return str(file), read_conll_corpus(file, self.columns, self.line_format, self.unit, self.encoding)


class Conllu(SequenceDataModule):
    """CoNLL-U treebanks in a folder; the label is the part of speech.

    Args:
        path: folder; environment variables are expanded.
        files: file of each split.
        tags: "upos" or "xpos".
        scheme: "none", since parts of speech are not segments.
        encoding: of the files.
        options: those of `SequenceDataModule`.
    """

    unlabelled = "all tags of this kind are _: set data.tags to the other kind, or give a tagged file"

    def __init__(
        self,
        path: str,
        files: dict[str, str],
        tags: Literal["upos", "xpos"] = "upos",
        scheme: Scheme = "none",
        encoding: str = "utf-8",
        **options: Any,
    ) -> None:
        super().__init__(scheme=scheme, **options)
        check_splits("data.files", files)
        self.path, self.files, self.tags, self.encoding = path, files, tags, encoding
        self.in_files = SplitFiles(path, files, {"tags": tags, "encoding": encoding})

    def read(self, split: str) -> tuple[str, Corpus] | None:
        """Return the file's name and the split, or None if `files` names no file for it."""
        file = split_file(self.path, self.files, split)
        if file is None:
            return None
        return str(file), conllu_corpus(file, self.tags, self.unit, self.encoding)


class Hub(SequenceDataModule):
    """A data set of the Hugging Face hub, one sentence per row.

    It must be open to the user (`hf auth login`), and in files: data sets that are programs are not run. Rows of other
    kinds, streams and what is loaded otherwise can be given to `InMemory`.

    Args:
        hub: id, such as "eriktks/conll2003".
        columns: column of each role, such as {word: tokens, label: ner_tags}.
        splits: the hub's name of each split.
        revision: branch, tag or commit, such as "refs/convert/parquet".
        config: configuration of the data set, if it has several.
        label_names: names of labels kept as bare numbers, by role.
        options: those of `SequenceDataModule`.
    """

    def __init__(
        self,
        hub: str,
        columns: dict[str, str],
        splits: dict[str, str],
        revision: str | None = None,
        config: str | None = None,
        label_names: dict[str, list[str]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        check_splits("data.splits", splits)
        self.hub, self.columns, self.splits = hub, columns, splits
        self.revision, self.config, self.label_names = revision, config, label_names

    def read(self, split: str) -> tuple[str, Corpus] | None:
        """Return a name and the split, fetched from the hub, or None if the data set has no such split."""
        from structperc.data.hub import hub_corpus  # needs `datasets`

        if split not in self.splits:
            return None
        name = self.splits[split]
        corpus = hub_corpus(self.hub, self.columns, name, self.revision, self.config, self.label_names, self.unit)
        return f"{self.hub} ({name})", replace(corpus, name=f"{self.hub} ({name})")


class Synthetic(SequenceDataModule):
    """The embedded corpus, made from a seed (see `structperc.data.synthetic`).

    Args:
        corpus_seed: of the corpus; `seed` is that of the order of training.
        train: number of training documents.
        dev: number of development documents, 0 for no such split.
        test: number of test documents, 0 for no such split.
        ambiguity: how much is undecidable locally, 0..1.
        unseen: share of names that training does not show, 0..1.
        options: those of `SequenceDataModule`.
    """

    def __init__(
        self,
        corpus_seed: int = 0,
        train: int = 300,
        dev: int = 100,
        test: int = 100,
        ambiguity: float = 0.5,
        unseen: float = 0.3,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        sizes = {"train": train, "dev": dev, "test": test}
        made = synthetic_splits(
            corpus_seed, train=train, dev=dev or 1, test=test or 1, ambiguity=ambiguity, unseen=unseen
        )
        self.splits = {split: rows for split, rows in made.items() if sizes[split]}

    def read(self, split: str) -> "tuple[str, Dataset] | None":
        """Return a name and the rows of the split, or None if it was asked to have no documents."""
        return (f"embedded corpus ({split})", self.splits[split]) if split in self.splits else None


logger = logging.getLogger("pytorch_lightning.structperc")
NAMES = {"train": ("train",), "dev": ("dev", "validation"), "test": ("test",)}  # of splits that nobody names


class Table(SequenceDataModule):
    """Tables in a folder: parquet, JSON lines, CSV, or what `datasets.Dataset.save_to_disk` has written.

    Args:
        path: folder; environment variables are expanded.
        files: file, or saved folder, of each split, such as {train: train.parquet, dev: dev.jsonl.gz}.
        columns: column of each role: {word: tokens, label: ner_tags} for a sentence, in lists or between spaces, in
            each row; with `sentence`, whose value changes where a sentence begins, for a token in each row (an empty
            name: an empty row of CSV ends a sentence); {text: text, spans: entities} for a document of running text in
            each row, whose spans have start, end and label.
            `document` has another value for each document.
        label_names: names of labels kept as bare numbers, by role.
        tokens: how running text is cut: "conll" or "ud", see `structperc.text`.
        sentences: where its sentences begin: "rules", "lines" or "one"; never inside of a span.
        misaligned: what becomes of spans that do not begin and end as tokens do: "error" lists them, "expand" extends
            them to whole tokens, "skip" leaves them out.
        overlaps: what becomes of spans that share a token: "error" lists them, "longest" keeps the longest.
        offsets: what those of spans count: "characters", "utf-16" code units, as JavaScript does, or "utf-8" bytes.
        heading: whether the first row of CSV names the columns; else these are "1", "2", ...
        encoding: of JSON and CSV.
        options: those of `SequenceDataModule`.
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
        offsets: OffsetUnit = "characters",
        heading: bool = True,
        encoding: str = "utf-8",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        check_splits("data.files", files)
        self.path, self.files, self.encoding = path, files, encoding
        text_options = TextOptions(tokens, sentences, misaligned, overlaps, offsets)
        self.reader = TableOptions(
            columns, label_names or {}, text_options, self.reading.labels or self.scheme, heading
        )
        self.reader.check("data")
        self.in_files = SplitFiles(path, files, {**self.reader.options(), "encoding": encoding})

    def read(self, split: str) -> tuple[str, Corpus] | None:
        """Return the file's name and the split, or None if `files` names no file for it."""
        file = split_file(self.path, self.files, split)
        if file is None:
            return None
        return str(file), read_table(file, self.reader, self.encoding, self.unit)


class InMemory(SequenceDataModule):
    """Data sets of the package `datasets` in memory; for use from Python.

    Args:
        data: a `DatasetDict` or another mapping, or one `Dataset`, the training data. An `IterableDataset` is read to
            its end and kept, which is said.
        columns: column of each role, see `Table`.
        splits: the name in `data` of each split, such as {train: train, dev: validation}. Default: train, dev or
            validation, and test, where there are such.
        label_names: names of labels kept as bare numbers, by role; those of class labels are known.
        tokens, sentences, misaligned, overlaps, offsets: how running text and its spans are read, see `Table`.
        options: those of `SequenceDataModule`.
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
        offsets: OffsetUnit = "characters",
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
        text_options = TextOptions(tokens, sentences, misaligned, overlaps, offsets)
        self.reader = TableOptions(columns, label_names or {}, text_options, self.reading.labels or self.scheme)
        self.reader.check("data")

    def read(self, split: str) -> tuple[str, Corpus] | None:
        """Return the split's name in the data and the split, or None if there is no such split."""
        from datasets import IterableDataset

        if split not in self.data:
            return None
        data, name = self.data[split], self.splits[split]
        if isinstance(data, IterableDataset):
            logger.info("%s: a stream, which is read to its end and kept in memory", name)
        return name, dataset_corpus(data, self.reader, name, self.unit)
