"""The same sentences from every kind of table, and what is said about tables that are wrong."""

import gzip
import json
from itertools import chain

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from hypothesis import given, settings
from hypothesis import strategies as st

from structperc.data.survey import inspect_file
from structperc.data.tag_schemes import spans
from structperc.datamodules import sources as table_sources
from structperc.datamodules.sources import InMemory, Table
from structperc.errors import InputError
from structperc.text.alignment import join_words
from tests.errors import error_message

NAMES = ["O", "B-PER", "I-PER", "B-LOC"]
WORDS = [["Anna", "Lind", "met", "Bo"], ["Bo", "left"], ["Rome"]]
LABELS = [["B-PER", "I-PER", "O", "B-PER"], ["B-PER", "O"], ["B-LOC"]]
DOCUMENTS = ["a", "a", "b"]
COLUMNS = {"word": "tokens", "label": "ner", "document": "doc"}
TEXT = {"text": "text", "spans": "entities"}


def rows(names=None):
    """One for each sentence."""
    kept = [[names.index(x) for x in one] for one in LABELS] if names else LABELS
    return [{"tokens": w, "ner": x, "doc": d, "id": 1} for w, x, d in zip(WORDS, kept, DOCUMENTS, strict=True)]


def dataset():
    lists = {"tokens": List(Value("string")), "ner": List(ClassLabel(names=NAMES))}
    return Dataset.from_list(rows(NAMES), features=Features(lists | {"doc": Value("string"), "id": Value("int64")}))


def lines(records):
    return "".join(json.dumps(row) + "\n" for row in records)


def text_rows():
    """A document in each."""
    found = []
    for words, labels in ((WORDS[:2], LABELS[:2]), (WORDS[2:], LABELS[2:])):
        text = join_words(words)
        marks = []
        for (first, _), own in zip([(0, 0), (4, 0)], labels, strict=False):
            for kind, a, b in spans(own):
                start, end = text.tokens[first + a][0], text.tokens[first + b - 1][1]
                marks.append({"start": start, "end": end, "label": kind})
        found.append({"text": text.text, "entities": marks})
    return found


def write(folder, kind):
    """-> the name of a file of this kind, and the columns that it has."""
    place = folder / f"train.{kind}"
    if kind == "parquet":
        dataset().to_parquet(str(place))
    elif kind == "saved":
        dataset().save_to_disk(str(place))
    elif kind == "jsonl":
        place.write_text(lines(rows()))
    elif kind == "jsonl.gz":
        place.write_bytes(gzip.compress(lines(rows()).encode()))
    elif kind == "text.jsonl":
        place.write_text(lines(text_rows()))
        return place.name, TEXT
    elif kind == "tsv":
        between = [f"{' '.join(w)}\t{' '.join(x)}\t{d}" for w, x, d in zip(WORDS, LABELS, DOCUMENTS, strict=True)]
        place.write_text("\n".join(["tokens\tner\tdoc", *between, ""]))
    else:
        cells = ["Sentence #,Word,doc,Tag"]
        for n, (words, labels) in enumerate(zip(WORDS, LABELS, strict=True)):
            for t, pair in enumerate(zip(words, labels, strict=True)):
                cells.append(f'{f"Sentence: {n}" if t == 0 else ""},"{pair[0]}",{DOCUMENTS[n]},{pair[1]}')
        place.write_text("\r\n".join(cells))
        return place.name, {"word": "Word", "label": "Tag", "sentence": "Sentence #", "document": "doc"}
    return place.name, COLUMNS


@pytest.mark.parametrize("kind", ["parquet", "saved", "jsonl", "jsonl.gz", "text.jsonl", "tsv", "csv"])
def test_all_kinds_of_tables_hold_the_same(tmp_path, kind):
    name, columns = write(tmp_path, kind)
    data = Table(str(tmp_path), {"train": name}, columns, unit="document", sentences="lines", scheme="IOBES")
    corpus = data.corpus("train")
    assert corpus.sentences_of(corpus.columns["word"]) == WORDS
    assert corpus.sentences_of(corpus.columns["label"]) == [["B-PER", "E-PER", "O", "S-PER"], ["S-PER", "O"], ["S-LOC"]]
    assert corpus.lengths.tolist() == [6, 1]
    assert not data.has("dev")


@pytest.mark.parametrize("stream", [False, True])
def test_data_sets_in_memory(stream, monkeypatch):
    said = []
    monkeypatch.setattr(table_sources.logger, "info", lambda message, *values: said.append(message % values))
    whole = DatasetDict({"train": dataset(), "validation": dataset().select([2]), "more": dataset()})
    held = {name: one.to_iterable_dataset() for name, one in whole.items()} if stream else whole
    data = InMemory(held, COLUMNS)
    corpus = data.corpus("train")
    assert said == (["train: reading the whole stream into memory"] if stream else [])
    assert corpus.sentences_of(corpus.columns["label"]) == LABELS
    assert data.corpus("dev").columns["word"] == ["Rome"]
    assert not data.has("test")
    assert data.label_set().names[0] == "O"
    assert InMemory(held, COLUMNS, splits={"test": "more"}).corpus("test").tokens == 7
    assert InMemory(whole["train"], COLUMNS).corpus("train").tokens == 7


@settings(max_examples=12)
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["Anna", "U.S.", "left", "é"]), st.sampled_from("OBI")), min_size=1, max_size=6
        ),
        min_size=1,
        max_size=3,
    )
)
def test_labels_become_spans_and_labels_again(drawn):
    words = [[word for word, _ in one] for one in drawn]
    text = join_words(words)
    labels, marks, first = [], [], 0
    for one in drawn:
        own = []
        for _, tag in one:
            own.append("O" if tag == "O" else "B-X" if tag == "B" or not own or own[-1] == "O" else "I-X")
        labels += own
        for kind, a, b in spans(own):
            start, end = text.tokens[first + a][0], text.tokens[first + b - 1][1]
            marks.append({"start": start, "end": end, "type": kind})
        first += len(one)
    data = Dataset.from_dict({"text": [text.text], "entities": [marks]})
    for scheme in ("IOB1", "BILOU"):
        corpus = InMemory(data, TEXT, sentences="lines", labels=scheme, scheme="IOB2", strict=True).corpus("train")
        assert corpus.columns == {"word": list(chain.from_iterable(words)), "label": labels}


def test_class_labels_within_spans_are_named():
    mark = {"start": Value("int64"), "end": Value("int64"), "label": ClassLabel(names=["LOC", "PER"])}
    features = Features({"text": Value("string"), "entities": List(mark)})
    data = Dataset.from_list(
        [{"text": "Bo left.", "entities": [{"start": 0, "end": 2, "label": 1}]}], features=features
    )
    assert InMemory(data, TEXT).corpus("train").columns["label"] == ["B-PER", "O", "O"]


BAD = {"tokens": ["Bo"], "ner": ["O"]}


@pytest.mark.parametrize(
    ("name", "text", "columns", "message"),
    [
        ("a.jsonl", lines([BAD, {"tokens": ["Bo"]}]), {}, "a.jsonl:2: "),
        ("a.jsonl", lines([BAD, {**BAD, "ner": ["O", "O"]}]), {}, "a.jsonl:2: 1"),
        ("a.jsonl", lines([{**BAD, "ner": [1]}]), {}, "a.jsonl:1: column 'ner'"),
        ("a.jsonl", lines([{**BAD, "ner": [None]}]), {}, "a.jsonl:1: column 'ner': "),
        ("a.jsonl", "{\n", {}, "a.jsonl:1: invalid JSON"),
        ("a.jsonl", "\n", {}, "a.jsonl: "),
        ("a.csv", "tokens,ner\na b,O\n", {}, "a.csv:2: 2"),
        ("a.csv", 'tokens,ner\n"a,O\n', {}, "a.csv:2: invalid CSV"),
        ("a.csv", "ner,ner\n", {}, "a.csv:1: "),
        ("a.txt", "a O\n", {}, "a.txt: "),
        ("a.parquet", "PAR1", {}, "a.parquet: "),
        ("a.jsonl", lines([{"text": "Bo", "entities": [{"start": 0, "end": "2"}]}]), TEXT, "a.jsonl:1: entities[0]"),
        ("a.jsonl", lines([{"text": "Anna", "entities": "x"}]), TEXT, "a.jsonl:1: entities is 'x'"),
    ],
)
def test_invalid_tables(tmp_path, name, text, columns, message):
    (tmp_path / name).write_text(text)
    data = Table(str(tmp_path), {"train": name}, columns or {"word": "tokens", "label": "ner"})
    assert message in error_message(data.corpus, "train")


def test_invalid_options(tmp_path):
    dataset().save_to_disk(str(tmp_path / "all" / "train"))
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    with pytest.raises(InputError, match="splits train"):
        Table(str(tmp_path), {"train": "all"}, COLUMNS).corpus("train")
    assert Table(str(tmp_path), {"train": "all/train"}, COLUMNS).corpus("train").tokens == 7
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: "):
        Table(str(tmp_path), {"train": "empty"}, COLUMNS).corpus("train")
    for options, message in (
        ({"columns": {"label": "x"}}, "columns must name word, or text and spans"),
        ({"columns": {"text": "x", "word": "y"}}, "columns name text and"),
        ({"columns": COLUMNS, "tokens": "ptb"}, "tokens must be one of conll, ud, characters, not 'ptb'"),
        ({"columns": TEXT, "scheme": "none"}, "spans are segments; set scheme"),
        ({"columns": COLUMNS, "splits": {"dev": "dev"}}, "splits: missing .*'dev'.*'train'"),
        ({"columns": COLUMNS, "splits": {"valid": "train"}}, "did you mean dev"),
    ):
        with pytest.raises(InputError, match=message):
            InMemory(dataset(), **options)
    with pytest.raises(InputError, match="'train' "):
        InMemory({"train": []}, COLUMNS)
    with pytest.raises(InputError, match=r"train: .*'words'"):
        InMemory(dataset(), {"word": "words"}).corpus("train")
    with pytest.raises(InputError, match=r"train, row 1: .*'ner' has 1"):
        InMemory(dataset(), COLUMNS, label_names={"label": ["O"]}).corpus("train")


def spans_of(rows, **options):
    """The labels that a table of texts with spans has."""
    data = Dataset.from_dict({"text": [text for text, _ in rows], "entities": [marks for _, marks in rows]})
    return InMemory(data, TEXT, **options).corpus("train").columns["label"]


def mark(start, end, kind="PER"):
    return {"start": start, "end": end, "label": kind}


WRONG = [
    ("Anna Lind left Rome", [mark(0, 7), mark(5, 9, "ORG"), mark(14, 19, "LOC")]),
    ("Bo left", [mark(0, 2), mark(3, 99)]),
]


SPANS_IN = {
    "a.jsonl": lambda spans: {"text": "Bo left", "spans": spans},
    "doccano.jsonl": lambda spans: {"id": 1, "text": "Bo left", "label": spans},
    "tasks.json": lambda spans: {
        "data": {"text": "Bo left"},
        "annotations": [
            {"result": [{"type": "labels", "value": {"start": a, "end": b, "labels": [c]}} for a, b, c in spans]}
        ],
    },
}


@pytest.mark.parametrize("lacking", [1, 2])
@pytest.mark.parametrize("name", SPANS_IN)
def test_a_row_without_the_field_of_spans_is_named(tmp_path, name, lacking):
    row = SPANS_IN[name]
    records = [row([[0, 2, "PER"]]), row([[0, 2, "PER"]]), row([])]
    path = tmp_path / name
    path.write_text(json.dumps(records) if name.endswith(".json") else lines(records))
    assert inspect_file(str(path)).table.spans.total == 2
    field = list(records[0])[-1]
    del records[lacking - 1][field]
    path.write_text(json.dumps(records) if name.endswith(".json") else lines(records))
    message = error_message(inspect_file, str(path))
    place = f", row {lacking}" if name.endswith(".json") else f":{lacking}"
    assert message.startswith(f"{path}{place}: ")
    assert repr(field) in message
    assert "change columns" not in message


def test_all_misaligned_spans_are_named():
    said = error_message(spans_of, WRONG)
    kinds = ["token cut 1", "white space at an edge 1", "empty or outside the text 1", "overlap 1"]
    places = ["row 1: span 0..7 'Anna Li'", "row 2: span 3..99"]
    advice = ["data.misaligned: expand", "data.overlaps: longest"]
    assert [fact for fact in ("4 of 5 spans", *kinds, *places, *advice) if fact not in said] == []


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({"misaligned": "expand", "overlaps": "longest"}, ["B-PER", "I-PER", "O", "B-LOC", "B-PER", "O"]),
        ({"misaligned": "drop"}, ["O", "B-ORG", "O", "O", "B-PER", "O"]),
    ],
)
def test_options_for_misaligned_spans(options, labels):
    assert list(spans_of(WRONG, **options)) == labels
    with pytest.raises(InputError, match="overlap"):
        spans_of(WRONG, misaligned="expand")


@pytest.mark.parametrize(("unit", "codec", "width"), [("utf-16", "utf-16-le", 2), ("utf-8", "utf-8", 1)])
def test_units_of_offsets(unit, codec, width):
    text = "Zoë 😀 met Bo in Rome."

    def at(words):
        start = text.index(words)
        return mark(*(len(text[:end].encode(codec)) // width for end in (start, start + len(words))))

    rows = [(text, [at("Zoë"), at("Bo"), at("Rome")])]
    with pytest.raises(InputError, match=f"data.offsets: {unit}"):
        spans_of(rows)
    assert list(spans_of(rows, offsets=unit)) == ["B-PER", "O", "O", "B-PER", "O", "B-PER", "O"]


def test_suggested_tokenizer():
    with pytest.raises(InputError, match=r"data.tokens: ud"):
        spans_of([("the third-quarter report", [mark(4, 9)])])


def test_no_sentence_ends_inside_of_a_span():
    data = Dataset.from_dict({"text": ["At Yahoo! Inc. Bo left. He ran."], "entities": [[mark(3, 14)]]})
    corpus = InMemory(data, TEXT).corpus("train")
    assert corpus.sentences_of(corpus.columns["label"])[0][:5] == ["O", "B-PER", "I-PER", "I-PER", "O"]
    assert len(corpus) == 2
