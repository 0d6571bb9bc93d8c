"""Where sequences come from, as Lightning data modules: column files, treebanks, the hub, the embedded corpus."""

from typing import TYPE_CHECKING, Any, Literal

from structperc.batching.sequence_data import InFiles, SequenceData, check_splits, split_file
from structperc.data.blocks import first_lines
from structperc.data.conll import field_count, read_conll
from structperc.data.conllu import read_conllu
from structperc.data.corpus import Corpus
from structperc.data.even_columns import read_even
from structperc.data.reading import DOCSTART, LineFormat, Separator
from structperc.data.synthetic import synthetic_splits
from structperc.data.tags import Scheme

if TYPE_CHECKING:
    from datasets import Dataset


class Conll(SequenceData):
    """CoNLL column files in a folder.

    Args:
        path: folder; environment variables are expanded, as in "${STRUCTPERC_DATA}/conll2003".
        files: file of each split, such as {train: eng.train, dev: eng.testa}.
        columns: roles of the columns in order; `word` and `label` are needed, "_" skips a column.
        docstart: first field of the lines that open a document.
        comments: drop comments, lines that begin with "#" and have another number of fields than the tokens.
        encoding: of the files.
        separator: "whitespace" (spaces and tabs), or "tab" for fields that hold spaces.
        options: those of `SequenceData`.
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
        self.in_files = InFiles(path, files, {"columns": columns, **self.line_format._asdict(), "encoding": encoding})

    def training_files(self) -> dict[str, Any]:
        """Return the options of all sources, with a role for each column of the training file, "_" for unread ones."""
        found = super().training_files()
        file = split_file(self.path, self.files, "train")
        width = 0 if file is None else field_count(first_lines(file, self.encoding), self.line_format)
        roles = [role or "_" for role in self.columns]
        return {**found, "columns": [*roles, *["_"] * (width - len(roles))]}

    def read(self, split: str) -> "tuple[str, Dataset | Corpus] | None":
        """Return the file's name and what the split holds, or None if `files` names no file for it."""
        file = split_file(self.path, self.files, split)
        if file is None:
            return None
        if self.encoding.lower() in ("utf-8", "utf8") and file.is_file():
            corpus = read_even(file, self.columns, self.line_format, self.unit, workers=self.workers)
            if corpus is not None:
                return str(file), corpus
        return str(file), read_conll(file, self.columns, encoding=self.encoding, **self.line_format._asdict())


class Conllu(SequenceData):
    """CoNLL-U treebanks in a folder; the label is the part of speech.

    Args:
        path: folder; environment variables are expanded.
        files: file of each split.
        tags: "upos" or "xpos".
        scheme: "none", since parts of speech are no segments.
        encoding: of the files.
        options: those of `SequenceData`.
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
        self.in_files = InFiles(path, files, {"tags": tags, "encoding": encoding})

    def read(self, split: str) -> "tuple[str, Dataset] | None":
        """Return the file's name and the rows of the split, or None if `files` names no file for it."""
        file = split_file(self.path, self.files, split)
        if file is None:
            return None
        return str(file), read_conllu(file, self.tags, self.encoding)


class Hub(SequenceData):
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
        options: those of `SequenceData`.
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

    def read(self, split: str) -> "tuple[str, Dataset] | None":
        """Return a name and the rows of the split, fetched from the hub, or None if the data set has no such split."""
        from structperc.data.hub import read_hub  # which needs `datasets`

        if split not in self.splits:
            return None
        name = self.splits[split]
        rows = read_hub(
            self.hub,
            self.columns,
            split=name,
            revision=self.revision,
            config=self.config,
            label_names=self.label_names,
        )
        return f"{self.hub} ({name})", rows


class Synthetic(SequenceData):
    """The embedded corpus, made from a seed (see `structperc.data.synthetic`).

    Args:
        corpus_seed: of the corpus; `seed` is that of the order of training.
        train: number of training documents.
        dev: number of development documents, 0 for no such split.
        test: number of test documents, 0 for no such split.
        ambiguity: how much is undecidable locally, 0..1.
        unseen: share of names that training does not show, 0..1.
        options: those of `SequenceData`.
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
