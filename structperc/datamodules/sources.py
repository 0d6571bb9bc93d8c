"""Data modules for column files, treebanks, tables, the hub, the embedded corpus and data sets in memory."""

import logging
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from structperc.data.annotations import Misaligned, OffsetUnit, Overlaps, TextOptions
from structperc.data.conll import conllu_corpus, field_count, read_conll_corpus
from structperc.data.corpus import Corpus
from structperc.data.format_detection import first_lines
from structperc.data.label_sets import ALLOWED, is_incomplete, split_label_set
from structperc.data.labels import LabelSet
from structperc.data.read_options import DOCSTART, LineFormat, Separator
from structperc.data.synthetic import synthetic_splits
from structperc.data.table_files import COMPLETE, NOT, TableOptions, dataset_corpus, read_table
from structperc.data.tag_schemes import Scheme
from structperc.data.text_files import expand_path
from structperc.datamodules.base import SPLITS, SequenceDataModule, check_splits
from structperc.datamodules.cache import file_digest
from structperc.errors import InputError
from structperc.spelling import did_you_mean

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger("pytorch_lightning.structperc")
DEFAULT_SPLITS = {"train": ("train",), "dev": ("dev", "validation"), "test": ("test",)}


class FileDataModule(SequenceDataModule):
    """Base class of data modules that read a file for each split."""

    path: str  # folder
    files: dict[str, str]  # by split

    def set_files(self, path: str, files: dict[str, str], options: Mapping[str, Any]) -> None:
        """Set folder, files and reading options. Raises InputError for an unknown split."""
        check_splits("data.files", files)
        self.path, self.files, self.file_options = path, files, options

    def split_file(self, split: str) -> Path | None:
        """Return the file of a split, with environment variables expanded; None if `files` names none."""
        return expand_path(Path(self.path) / self.files[split]) if split in self.files else None

    def read(self, split: str) -> tuple[str, Corpus] | None:
        """Return the name of the file and its content; None if `files` names no file for the split."""
        file = self.split_file(split)
        return None if file is None else (str(file), self.read_file(file))

    @abstractmethod
    def read_file(self, file: Path) -> Corpus:
        """Return a file as a corpus of sequences of the unit."""


class Conll(FileDataModule):
    r"""CoNLL column files in a folder.

    Args:
        path: Folder; environment variables are expanded, as in "${STRUCTPERC_DATA}/conll2003".
        files: File of each split, such as {train: eng.train, dev: eng.testa}.
        columns: Roles of the columns in order; `word` and `label` are required, "_" skips a column.
        docstart: First field of lines before documents.
        comments: Drop comments, lines that begin with "#" and have another number of fields than the tokens.
        encoding: Encoding of the files.
        separator: "whitespace" (spaces and tabs), or "tab" for fields that contain spaces.
        options: Options of `SequenceDataModule`.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("train.txt").write_text("Anna B-PER\nleft O\n\nShe O\nsaw O\nOslo B-LOC\n")
        >>> data = Conll(".", {"train": "train.txt"}, columns=["word", "label"])
        >>> corpus = data.corpus("train")
        >>> len(corpus), corpus.columns["label"]
        (2, ['B-PER', 'O', 'O', 'O', 'B-LOC'])
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
        self.columns, self.encoding = columns, encoding
        self.line_format = LineFormat(separator, comments, docstart)
        self.set_files(path, files, {"columns": columns, **self.line_format._asdict(), "encoding": encoding})

    def training_files(self) -> dict[str, Any]:
        """Return the options of the base class, and the role of each column of the training file, "_" if unused."""
        found = super().training_files()
        file = self.split_file("train")
        width = 0 if file is None else field_count(first_lines(file, self.encoding), self.line_format)
        roles = [role or "_" for role in self.columns]
        return {**found, "columns": [*roles, *["_"] * (width - len(roles))]}

    def read_file(self, file: Path) -> Corpus:
        """Return a file as a corpus."""
        return read_conll_corpus(file, self.columns, self.line_format, self.unit, self.encoding)


class Conllu(FileDataModule):
    r"""CoNLL-U treebanks in a folder; the label is the part of speech.

    Args:
        path: Folder; environment variables are expanded.
        files: File of each split.
        tags: "upos" or "xpos".
        scheme: "none", since parts of speech are not segments.
        encoding: Encoding of the files.
        options: Options of `SequenceDataModule`.
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
        self.tags, self.encoding = tags, encoding
        self.set_files(path, files, {"tags": tags, "encoding": encoding})

    def read_file(self, file: Path) -> Corpus:
        """Return a file as a corpus."""
        return conllu_corpus(file, self.tags, self.unit, self.encoding)


class Hub(SequenceDataModule):
    """A data set of the Hugging Face hub, with one sentence per row.

    The user needs access to it (`hf auth login`). Loading scripts are not run. For other kinds of rows and for streams
    use `InMemory`.

    Args:
        hub: Id, such as "eriktks/conll2003".
        columns: Column of each role, such as {word: tokens, label: ner_tags}.
        splits: Name on the hub of each split.
        revision: Branch, tag or commit, such as "refs/convert/parquet".
        config: Configuration of the data set, if it has several.
        label_names: Names of labels stored as numbers, by role.
        options: Options of `SequenceDataModule`.
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
        """Return a name and a split, downloaded from the hub; None if `splits` does not name it."""
        from structperc.data.hub_datasets import load_split  # needs `datasets`

        if split not in self.splits:
            return None
        data = load_split(self.hub, self.config, self.splits[split], self.revision)
        name = f"{self.hub} ({self.splits[split]})"
        return name, dataset_corpus(data, TableOptions(self.columns, self.label_names or {}), name, self.unit)


class Synthetic(SequenceDataModule):
    """The embedded corpus of generated documents, see `structperc.data.synthetic`.

    Args:
        corpus_seed: Seed of the corpus; `seed` is the seed of the order of training.
        train: Number of training documents.
        dev: Number of development documents; 0: no such split.
        test: Number of test documents; 0: no such split.
        ambiguity: Probability, 0..1, of contexts that fit every class.
        unseen: Share of names, 0..1, that do not occur in the training data.
        options: Options of `SequenceDataModule`.
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
        rows = synthetic_splits(
            corpus_seed, train=train, dev=dev or 1, test=test or 1, ambiguity=ambiguity, unseen=unseen
        )
        self.splits = {split: rows[split] for split, size in sizes.items() if size}

    def read(self, split: str) -> "tuple[str, Dataset] | None":
        """Return a name and the rows of a split; None if it has no documents."""
        return (f"embedded corpus ({split})", self.splits[split]) if split in self.splits else None


class Table(FileDataModule):
    r"""Tables in a folder: parquet, JSON lines, CSV, saved folders of `datasets`, exports of annotation tools.

    Args:
        path: Folder; environment variables are expanded.
        files: File, or folder of `datasets.Dataset.save_to_disk`, of brat, WebAnno TSV or UIMA CAS JSON, of each
            split, such as {train: train.parquet, dev: dev.jsonl.gz}.
        columns: Column of each role. {word: tokens, label: ner_tags}: each row is a sentence, as lists or as strings
            split at spaces. With `sentence`, whose value changes at the beginning of a sentence, each row is a token
            (an empty name: an empty row of CSV ends a sentence). {text: text, spans: entities}: each row is a document
            of running text, whose spans have start, end and label. `document` has another value for each document.
            For incomplete labels, `complete` is false in rows whose tokens outside of the spans are unknown, and `not`
            has spans whose tokens are not of a type; rows may lack both.
        label_names: Names of labels stored as numbers, by role.
        tokens: Tokenizer of running text: "conll", "ud" or "characters", see `structperc.text`.
        sentences: Sentence splitter: "rules", "lines" or "one"; no sentence ends inside a span.
        misaligned: Treatment of spans whose edges are not token edges: "refuse" lists them, "expand" extends them to
            whole tokens, "drop" leaves them out.
        overlaps: Treatment of spans that share a token: "refuse" lists them, "longest" keeps the longest,
            "first" the one that begins first.
        offsets: Unit of the offsets of spans: "characters", "utf-16" code units, as in JavaScript, or "utf-8" bytes.
        heading: True if the first row of CSV names the columns; otherwise they are called "1", "2", ...
        encoding: Encoding of JSON and CSV.
        options: Options of `SequenceDataModule`.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("train.jsonl").write_text('{"text": "Anna left.", "spans": [[0, 4, "PER"]]}\n')
        >>> data = Table(".", {"train": "train.jsonl"}, columns={"text": "text", "spans": "spans"})
        >>> corpus = data.corpus("train")
        >>> list(corpus.columns["word"]), list(corpus.columns["label"])
        (['Anna', 'left', '.'], ['B-PER', 'O', 'O'])
    """

    def __init__(
        self,
        path: str,
        files: dict[str, str],
        columns: dict[str, str],
        label_names: dict[str, list[str]] | None = None,
        tokens: str = "conll",
        sentences: str = "rules",
        misaligned: Misaligned = "refuse",
        overlaps: Overlaps = "refuse",
        offsets: OffsetUnit = "characters",
        heading: bool = True,
        encoding: str = "utf-8",
        **options: Any,
    ) -> None:
        super().__init__(**with_label_sets(options, columns))
        self.encoding = encoding
        text_options = TextOptions(tokens, sentences, misaligned, overlaps, offsets)
        self.reader = TableOptions(
            columns, label_names or {}, text_options, self.reading.labels or self.scheme, heading
        )
        self.reader.check("data")
        self.set_files(path, files, {**self.reader.options(), "encoding": encoding})

    def read_file(self, file: Path) -> Corpus:
        """Return a file as a corpus."""
        return read_table(file, self.reader, self.encoding, self.unit)

    def _cache_key(self, split: str, file: Path) -> Any:
        key = super()._cache_key(split, file)
        return [*key, file_digest(file.with_suffix(".txt"))] if file.suffix == ".ann" else key


def with_label_sets(options: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of `SequenceDataModule`, with incomplete labels if columns of annotated texts have them."""
    sets = {COMPLETE, NOT} & columns.keys()
    return {**options, "incomplete": True} if sets else dict(options)


class Combined(SequenceDataModule):
    r"""Several sources as one, such as corpora that annotate different types.

    A split consists of this split of all sources that have it, in their order. A source whose `annotated_types` are
    given has incomplete labels: leave out its development data, or evaluation raises an error.

    Args:
        sources: The sources, with the same unit, tag scheme and columns.
        options: Options of `SequenceDataModule`.

    Raises:
        InputError: No sources, or sources of different units or tag schemes; when the training data is read, an
            annotated type that no source has there.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("names.txt").write_text("Anna B-PER\nsaw O\nOslo O\n")
        >>> _ = Path("places.txt").write_text("Oslo B-LOC\nsaw O\nAnna O\n")
        >>> names = Conll(".", {"train": "names.txt"}, ["word", "label"], annotated_types=["PER"])
        >>> places = Conll(".", {"train": "places.txt"}, ["word", "label"], annotated_types=["LOC"])
        >>> data = Combined([names, places])
        >>> data.label_set().names, data.corpus("train").columns["allowed"][:3]
        (('O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER'), ['B-PER', '!B-PER|I-PER', '!B-PER|I-PER'])
    """

    def __init__(self, sources: list[SequenceDataModule], **options: Any) -> None:
        super().__init__(**options)
        for number, source in enumerate(sources):
            for name in ("unit", "scheme"):
                own, wanted = getattr(source, name), getattr(self, name)
                if own != wanted:
                    raise InputError(f"data.sources[{number}].{name} is {own}, but data.{name} is {wanted}; change one")
        if not sources:
            raise InputError("data.sources: no sources; give one or more")
        self.sources = sources

    def read(self, split: str) -> tuple[str, Corpus] | None:
        """Return a split of all sources that have it; None if none has."""
        parts = [source.corpus(split) for source in self.sources if source.has(split)]
        if any(is_incomplete(part) for part in parts):
            parts = [p if is_incomplete(p) else p.replace_column(ALLOWED, p.columns["label"]) for p in parts]
        if not parts:
            return None
        whole = Corpus.concat(parts)
        if split == "train" and is_incomplete(whole):
            self._check_annotated_types(whole)
        return whole.name, whole

    def _check_annotated_types(self, whole: Corpus) -> None:
        """Raise InputError for annotated types that no source has in its training data."""
        sets = map(split_label_set, whole.factorize(ALLOWED).distinct)
        labels = sorted({name for names, excluded in sets for name in names if not excluded})
        known = LabelSet.from_corpus(labels, self.scheme).type_names
        for number, source in enumerate(self.sources):
            for name in source.annotated_types or ():
                if name not in known:
                    place, types = f"data.sources[{number}].annotated_types", ", ".join(known)
                    raise InputError(f"{place}: unknown type {name!r}; known are {types}{did_you_mean(name, known)}")

    def _normalise(self, split: str, name: str, found: "Dataset | Corpus") -> Corpus:
        assert isinstance(found, Corpus)
        return found


class InMemory(SequenceDataModule):
    """Data sets of the package `datasets` in memory; for use from Python.

    Args:
        data: A `DatasetDict` or another mapping, or one `Dataset`, the training data. An `IterableDataset` is read
            completely and kept in memory.
        columns: Column of each role, see `Table`.
        splits: Name in `data` of each split, such as {train: train, dev: validation}. Default: train, dev or
            validation, and test, if present.
        label_names: Names of labels stored as numbers, by role; those of class labels are read from the data set.
        tokens: Tokenizer of running text, see `Table`.
        sentences: Sentence splitter of running text, see `Table`.
        misaligned: Treatment of spans whose edges are not token edges, see `Table`.
        overlaps: Treatment of spans that share a token, see `Table`.
        offsets: Unit of the offsets of spans, see `Table`.
        options: Options of `SequenceDataModule`.
    """

    def __init__(
        self,
        data: Any,
        columns: dict[str, str],
        splits: dict[str, str] | None = None,
        label_names: dict[str, list[str]] | None = None,
        tokens: str = "conll",
        sentences: str = "rules",
        misaligned: Misaligned = "refuse",
        overlaps: Overlaps = "refuse",
        offsets: OffsetUnit = "characters",
        **options: Any,
    ) -> None:
        from datasets import Dataset, IterableDataset

        super().__init__(**with_label_sets(options, columns))
        given = data if isinstance(data, Mapping) else {"train": data}
        if splits is None:
            splits = {split: name for split in SPLITS for name in DEFAULT_SPLITS[split] if name in given}
        check_splits("splits", splits)
        if missing := [name for name in splits.values() if name not in given]:
            raise InputError(f"splits: missing {missing}; the data has {list(given)}")
        for name in splits.values():
            if not isinstance(given[name], Dataset | IterableDataset):
                raise InputError(f"data: {name!r} is a {type(given[name]).__name__}; give a datasets.Dataset")
        self.data = {split: given[name] for split, name in splits.items()}
        self.splits = splits
        text_options = TextOptions(tokens, sentences, misaligned, overlaps, offsets)
        self.reader = TableOptions(columns, label_names or {}, text_options, self.reading.labels or self.scheme)
        self.reader.check("data")

    def read(self, split: str) -> tuple[str, Corpus] | None:
        """Return a split and its name in the data; None if it is missing."""
        from datasets import IterableDataset

        if split not in self.data:
            return None
        data, name = self.data[split], self.splits[split]
        if isinstance(data, IterableDataset):
            logger.info("%s: reading the whole stream into memory", name)
        return name, dataset_corpus(data, self.reader, name, self.unit)
