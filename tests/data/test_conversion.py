"""Documents of annotation tools: examples of the shape of their documentation, and round trips."""

import json
from pathlib import Path

import pytest
import torch

from structperc.criteria import CRFLoss
from structperc.data import AnnotatedDocument, Table, read_annotated, write_annotated
from structperc.data.conversion import COLUMN_FORMATS, FORMATS
from structperc.data.standoff import read_standoff
from structperc.errors import InputError
from structperc.text import tokenize
from structperc.text.alignment import TextSpan
from structperc.text.tokenizer import line_sentences
from tests.tiny import make_tagger

ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
SMILE = "\U0001f600"  # two UTF-16 code units
HEAD = "#FORMAT=WebAnno TSV 3.3\n"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows(path):
    """The rows of a file or folder, spans as (start, end, type)."""
    found = []
    for _, row in read_standoff(Path(path)):
        keys = ("start", "end", "label", "continuous")
        lists = {key: value for key, value in row.items() if isinstance(value, list)}
        spans = {key: [tuple(one[k] for k in keys if k in one) for one in value] for key, value in lists.items()}
        found.append({**row, **spans})
    return found


def cas(text, *annotations):
    """A UIMA CAS; annotations are (type, begin, end, features)."""
    sofa = {"%ID": 1, "%TYPE": "uima.cas.Sofa", "sofaID": "_InitialView", "sofaString": text}
    own = [
        {"%ID": n, "%TYPE": kind, "@sofa": 1, "begin": begin, "end": end, **features}
        for n, (kind, begin, end, features) in enumerate(annotations, 2)
    ]
    members = {"_InitialView": {"%SOFA": 1, "%MEMBERS": [one["%ID"] for one in own]}}
    return json.dumps({"%TYPES": {}, "%FEATURE_STRUCTURES": [sofa, *own], "%VIEWS": members})


# -- reading -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (  # offsets count UTF-16 code units
            HEAD + f"#T_SP=webanno.custom.X|value\n\n\n#Text=We like {SMILE} Bo\n"
            f"1-1\t0-2\tWe\t_\t\n1-2\t3-7\tlike\t_\t\n1-3\t8-10\t{SMILE}\tA\t\n1-4\t11-13\tBo\tB\t\n",
            {"text": f"We like {SMILE} Bo", "spans": [(8, 9, "A"), (10, 12, "B")]},
        ),
        (  # a sentence of two lines, a gap before the next, escapes, a layer without features
            HEAD + "#T_SP=webanno.custom.Mark|\n\n\n#Sentence.id=s1\n#Text=a\\tb\n#Text=c\n"
            "1-1\t0-3\ta\\tb\t*\t\n1-2\t4-5\tc\t*[1]\t\n\n#Text=d\n2-1\t7-8\td\t*[1]\t\n",
            {"text": "a\tb\nc\n d", "spans": [(0, 3, "Mark"), (4, 8, "Mark")]},
        ),
        (  # stacked spans, parts of tokens, other layers, slots, relations
            HEAD + "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue\n"
            f"#T_SP={ENTITY}|identifier|value\n"
            "#T_SP=webanno.custom.Frame|FE|ROLE_webanno.custom.Frame:R_webanno.custom.L|webanno.custom.Lu\n"
            "#T_RL=de.Dependency|flavor|BT_de.POS\n\n\n#Text=Ms. Haag plays\n"
            "1-1\t0-3\tMs.\tNNP\t*[1]|*[2]\tPER[1]|A\\|B\\[1\\][2]\tf\tr\t1-2\tsubj\t1-3\n"
            "1-2\t4-8\tHaag\tNNP\t*[1]\tPER[1]\t_\t_\t_\t_\t_\n1-2.1\t4-6\tHa\t_\t*\tSub\t_\t_\t_\t_\t_\n"
            "1-3\t9-14\tplays\tVBD\t_\t_\t_\t_\t_\t_\t_\n",
            {
                "text": "Ms. Haag plays",
                "spans": [(0, 8, "PER"), (0, 3, "A|B[1]"), (4, 6, "Sub")],
                "Frame.FE": [(0, 3, "f")],
                "NamedEntity.identifier": [(0, 8, ""), (0, 3, ""), (4, 6, "")],
            },
        ),
    ],
)
def test_webanno(text, expected):
    Path("a.tsv").write_text(text, encoding="utf-8")
    (found,) = rows("a.tsv")
    assert found.pop("document") == "a"
    assert found == expected


def test_cas_json():
    feature = {"%NAME": "value", "%RANGE": "uima.cas.String"}
    given = cas(
        f"{SMILE} Bo left",
        ("uima.tcas.DocumentAnnotation", 0, 10, {"language": "en"}),
        ("de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token", 0, 2, {"id": "t"}),
        (ENTITY, 3, 5, {"value": "PER"}),
        ("webanno.custom.Mark", 0, 2, {}),
        ("webanno.custom.Relation", 0, 2, {"@Governor": 3, "label": "x"}),
        ("webanno.custom.Empty", 3, 5, {}),
    )
    types = {"webanno.custom.Empty": {"%NAME": "webanno.custom.Empty", "value": feature}}
    Path("a.json").write_text(json.dumps({**json.loads(given), "%TYPES": types}), encoding="utf-8")
    (found,) = rows("a.json")
    assert found["spans"] == [(2, 4, "PER")]
    assert (found["Mark"], found["Empty.value"]) == ([(0, 1, "Mark")], [(2, 4, "")])
    assert "Relation.label" not in found


def test_entities_without_a_value_are_reported_together():
    lines = "1-1\t0-3\tMs.\t_\t\n1-2\t4-8\tHaag\tPER\t\n1-3\t9-14\tplays\t*\t\n1-4\t15-17\tBo\t*\t\n"
    Path("a.tsv").write_text(f"{HEAD}#T_SP={ENTITY}|value\n\n\n#Text=Ms. Haag plays Bo\n{lines}")
    columns = {"text": "text", "spans": "spans"}
    with pytest.raises(InputError, match=r"2 of 3 spans.*9\.\.14 'plays' has no type.*15\.\.17.*misaligned"):
        Table(".", {"train": "a.tsv"}, columns).corpus("train")
    for treatment in ("drop", "expand"):
        data = Table(".", {"train": "a.tsv"}, columns, misaligned=treatment)
        assert list(data.corpus("train").columns["label"]) == ["O", "B-PER", "O", "O"]
    task = {"data": {"text": "Bo"}, "annotations": [{"result": [{"type": "labels", "value": {"start": 0, "end": 2}}]}]}
    Path("a.json").write_text(json.dumps([task]))
    with pytest.raises(InputError, match="1 of 1 spans"):
        read_annotated("a.json")


def brat_folder():
    """Two texts, of which one is in a subfolder and has no spans."""
    Path("brat/more").mkdir(parents=True)
    Path("brat/a.txt").write_text(f"{SMILE} Bo Berg left New\nYork, at last.", encoding="utf-8")
    lines = ["T1\tPER 2 9\tBo Berg", "T2\tLOC 15 18;19 23\tNew York", "T3\tTIME 5 9;28 32\tBerg last"]
    lines += ["R1\tIn Arg1:T1 Arg2:T2", "#1\tAnnotatorNotes T1\tsure", "*\tEquiv T1 T2"]
    Path("brat/a.ann").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("brat/more/b.txt").write_text("Nothing.", encoding="utf-8")
    Path("brat/more/b.ann").write_text("", encoding="utf-8")


def test_brat_trains():
    brat_folder()
    first, second = rows("brat")
    assert first["spans"] == [(2, 9, "PER"), (15, 23, "LOC"), (5, 32, "TIME", False)]
    assert (second["document"], second["spans"]) == ("more/b", [])
    columns = {"text": "text", "spans": "spans"}
    with pytest.raises(InputError, match=r"a\.ann: span 5..32"):
        Table(".", {"train": "brat"}, columns).corpus("train")
    data = Table(".", {"train": "brat"}, columns, misaligned="drop", scheme="IOBES")
    labels = list(data.corpus("train").columns["label"])
    assert labels == ["O", "B-PER", "E-PER", "O", "B-LOC", "E-LOC", "O", "O", "O", "O", "O", "O"]


def test_the_cache_depends_on_the_text_of_brat():
    brat_folder()
    words = []
    for text in ("Nothing.", "No."):
        Path("brat/more/b.txt").write_text(text, encoding="utf-8")
        data = Table("brat/more", {"train": "b.ann"}, {"text": "text", "spans": "spans"}, cache="cache")
        words.append(data.corpus("train").columns["word"][0])
    assert words == ["Nothing", "No"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("b.ann", "", r"b\.txt"),
        ("a.ann", "T1\tPER 0-4\tAnna\n", r"a\.ann:1: "),
        ("a.tsv", HEAD + "\n\n#Text=Bo\n1-1\t0:2\tBo\n", r"a\.tsv:5: "),
        ("a.tsv", HEAD + "\n\n#Text=Bo\n1-1\t0-2\tBo\n\n#Text=He\n2-1\t1-3\tHe\n", r"a\.tsv:8: "),
        ("a.json", '{"%TYPES": {}}', r"a\.json: .*FEATURE_STRUCTURES"),
        ("a.json", '{"%FEATURE_STRUCTURES": []}', r"a\.json: 0 texts"),
    ],
)
def test_malformed_documents(name, text, message):
    Path("a.txt").write_text("Anna", encoding="utf-8")
    Path(name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        rows(name)


# -- writing -------------------------------------------------------------------------------------------------

FIRST = tokenize(f"{SMILE} Bo Berg left\\New York.\n  He, Bo\tBerg, came.", sentences=line_sentences)
MARKS = [TextSpan(2, 9, "PER"), TextSpan(15, 23, "A_B[C]")]
DOCUMENTS = [AnnotatedDocument("a", FIRST, MARKS), AnnotatedDocument("more/b", tokenize("Nothing."), [])]
SUFFIXES = {"label-studio": ".json", "conll2002": ".conll", "conll2003": ".conll"}


@pytest.mark.parametrize("form", FORMATS)
def test_round_trip(form):
    texts = [one.text for one in DOCUMENTS]
    assert texts[0].text[15:23] == "New York"
    target = form if form in ("brat", "webanno", "cas-json") else f"out{SUFFIXES.get(form, '.jsonl')}"
    write_annotated(target, DOCUMENTS, form)
    options = {} if form in COLUMN_FORMATS else {"sentences": "lines"}
    found = read_annotated(target, **options)
    assert [one.text.word_lists for one in found] == [text.word_lists for text in texts]
    assert [one.labels for one in found] == [one.labels for one in DOCUMENTS]
    if form not in (*COLUMN_FORMATS, "webanno"):  # these have no text between words or sentences
        assert [one.text.text for one in found] == [text.text for text in texts]
        assert found[0].spans == MARKS
    if target == form:
        assert [one.name for one in found] == ["a", "more/b"]


def test_conflicts_are_logged_one_by_one(run, fails, caplog):
    spans = [[0, 9, "A"], [5, 19, "B"], [10, 13, "C"], [19, 20, "D"], [14, 15, "E"]]
    given = {"text": "Anna Lind left Rome.", "label": spans}
    Path("a.jsonl").write_text(json.dumps(given) + "\n", encoding="utf-8")
    command = ("convert", "a.jsonl", "--to", "doccano", "-o", "out.jsonl")
    assert "3 of 5 spans" in fails(*command)
    assert not Path("out.jsonl").exists()
    for overlaps, expected in (("first", [[0, 9, "A"], [10, 14, "C"]]), ("longest", [[5, 19, "B"]])):
        caplog.clear()
        assert "A" in run(*command, "--misaligned", "expand", "--overlaps", overlaps) or overlaps == "longest"
        assert json.loads(Path("out.jsonl").read_text())["label"] == [*expected, [19, 20, "D"]]
        messages = [one.getMessage() for one in caplog.records]
        assert sum("a.jsonl:1: span 10..13 'lef' cuts" in one for one in messages) == 1
        assert sum("a.jsonl:1: span 14..15 ' '" in one and "dropped" in one for one in messages) == 1
        assert sum("overlaps" in one for one in messages) == len(messages) - 3 > 0
        assert {"expanded to whole tokens 1", "dropped 1"} <= set(messages[-1].partition("tokens: ")[2].split(", "))


def test_predictions_are_preannotations(run):
    row = {"text": "Bo left.", "spans": [{"start": 0, "end": 2, "type": "PER", "confidence": 0.75}]}
    Path("a.jsonl").write_text(json.dumps({**row, "predicted": ["spans"]}) + "\n", encoding="utf-8")
    run("convert", "a.jsonl", "--to", "label-studio", "-o", "tasks.json")
    (task,) = json.loads(Path("tasks.json").read_text())
    assert "annotations" not in task
    assert task["predictions"][0]["score"] == 0.75
    run("convert", "a.jsonl", "--to", "prodigy", "-o", "tasks.jsonl")
    (task,) = map(json.loads, Path("tasks.jsonl").read_text().splitlines())
    assert "answer" not in task
    assert task["tokens"][2] == {"text": ".", "start": 7, "end": 8, "id": 2, "ws": False}
    mark = {"start": 0, "end": 2, "label": "PER", "token_start": 0, "token_end": 0}
    assert {key: task["spans"][0][key] for key in mark} == mark
    Path("b.conll").write_text("#columns=word,predicted O\n\nBo B-PER\nleft O\n\n", encoding="utf-8")
    (found,) = read_annotated("b.conll")
    assert (found.predicted, found.labels) == (True, ["B-PER", "O"])


@pytest.mark.parametrize("form", FORMATS)
def test_types_with_spaces_and_bars(form):
    target = form if form in ("brat", "webanno", "cas-json") else f"out{SUFFIXES.get(form, '.jsonl')}"
    marks = [TextSpan(0, 4, "First Name"), TextSpan(10, 14, "A|B")]
    document = AnnotatedDocument("a", tokenize("Anna left Rome."), marks)
    if form in ("brat", *COLUMN_FORMATS):
        with pytest.raises(InputError, match=rf"{target}: .*First Name"):
            write_annotated(target, [document], form)
        return
    write_annotated(target, [document], form)
    (found,) = read_annotated(target)
    assert found.labels == document.labels == ["B-First Name", "O", "B-A|B", "O"]


def test_a_model_of_types_with_spaces(tmp_path, run, fails):
    rows = [{"text": "Bo left.", "label": [[0, 2, "First Name"]]}, {"text": "Rome left.", "label": [[0, 4, "A|B"]]}]
    Path("a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    data = Table(".", {"train": "a.jsonl"}, {"text": "text", "spans": "label"})
    assert data.label_set().names == ("O", "B-A|B", "I-A|B", "B-First Name", "I-First Name")
    tagger = make_tagger(data, CRFLoss(), k=1)
    with torch.no_grad():
        tagger.scorer.node[:, 3] += 100.0
    tagger.save("model")
    Path("a.txt").write_text("Bo left.", encoding="utf-8")
    assert run("tag", "model", "a.txt").splitlines()[2] == "Bo\tB-First Name"
    Path("a.conll").write_text("Bo\nleft\n", encoding="utf-8")
    assert "First Name" in fails("tag", "model", "a.conll")


def test_the_annotation_that_is_ground_truth():
    """Of a task of Label Studio with several ones."""
    marks = [{"type": "labels", "to_name": "t", "value": {"start": 0, "end": n, "labels": ["A"]}} for n in (2, 7)]
    given = [{"result": [one], "ground_truth": one is marks[1]} for one in marks]
    task = {"data": {"text": "Bo Berg left."}, "annotations": given}
    Path("a.json").write_text(json.dumps([task]), encoding="utf-8")
    assert read_annotated("a.json")[0].labels == ["B-A", "I-A", "O", "O"]
    task["annotations"] = [{**one, "ground_truth": False} for one in given]
    Path("a.json").write_text(json.dumps([task]), encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.json:1: .*ground truth"):
        read_annotated("a.json")


def test_columns_without_marks_of_documents(run):
    Path("a.conll").write_text("Bo B-PER\nleft O\n\nJo B-PER\nsang O\n\n", encoding="utf-8")
    run("convert", "a.conll", "--to", "brat", "-o", "brat")
    assert Path("brat/a.txt").read_text() == "Bo left\nJo sang"
    run("convert", "a.conll", "--to", "doccano", "-o", "a.jsonl")
    assert len(Path("a.jsonl").read_text().splitlines()) == 2


def test_incomplete_labels_are_refused():
    Path("a.conll").write_text("Bo B-PER\nleft ?\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="incomplete"):
        read_annotated("a.conll")


def test_several_labels_of_a_region(tmp_path):
    region = {"type": "labels", "to_name": "text", "value": {"start": 0, "end": 4, "labels": ["PER", "NAME"]}}
    task = {"data": {"text": "Anna left"}, "annotations": [{"result": [region]}]}
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps([task]))
    with pytest.raises(InputError):
        read_annotated(str(file))
    (document,) = read_annotated(str(file), overlaps="first")
    assert document.labels == ["B-PER", "O"]


def test_documents_without_words_are_reported(tmp_path, caplog):
    documents = [AnnotatedDocument("a", tokenize("Anna left"), []), AnnotatedDocument("b", tokenize(""), [])]
    write_annotated(tmp_path / "out.conll", documents, "conll2002")
    assert "out.conll" in caplog.text


@pytest.mark.parametrize("form", FORMATS)
def test_nul_is_refused_by_formats_that_cannot_hold_it(form):
    """JSON escapes it; readers of text refuse it."""
    text = tokenize("Anna\0 left. Bo\0")
    document = AnnotatedDocument("doc", text, [TextSpan(0, 5, "PER")])
    if "json" in form or form in ("doccano", "prodigy", "label-studio"):
        write_annotated("out", [document], form)
        written = [path for path in (Path("out"), *Path("out").rglob("*")) if path.is_file()]
        assert all(b"\0" not in path.read_bytes() and rb"\u0000" in path.read_bytes() for path in written)
    else:
        with pytest.raises(InputError, match="NUL"):
            write_annotated("out", [document], form)
        assert not [path for path in Path().rglob("*") if path.is_file()]


# -- texts of spans ------------------------------------------------------------------------------------------


def region(start, end, text):
    return {"start": start, "end": end, "text": text, "labels": ["PER"]}


def task(text, *regions):
    return {"data": {"text": text}, "annotations": [{"result": [{"type": "labels", "value": one} for one in regions]}]}


def write_rows(name, *rows):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def marked(file):
    """The texts of the spans of all documents of a file."""
    return [[one.text.text[a:b] for a, b, *_ in one.spans] for one in read_annotated(file)]


CRLF, LF = "He is.\r\nBo Berg left.", "He is.\nBo Berg left."


@pytest.mark.parametrize(
    ("text", "start", "end", "expected"),
    [
        (CRLF, 7, 14, "Bo Berg"),  # counted in the text with \\n
        (LF, 8, 15, "Bo Berg"),  # counted in the text with \\r\\n
        (f"{SMILE} is.\r\nBo Berg left.", 7, 14, "Bo Berg"),  # and in UTF-16 code units
        (f"{SMILE} Bo Berg é left.", 3, 10, "Bo Berg"),
        ("Zoë met Bo Berg here.", 9, 16, "Bo Berg"),  # UTF-8
        ("He met Bo\nBerg here.", 7, 14, "Bo Berg"),  # white space does not matter
    ],
)
@pytest.mark.parametrize("tool", ["Label Studio", "JSON-MIN", "doccano", "Prodigy", "spans"])
def test_offsets_that_count_in_another_way(tool, text, start, end, expected):
    """A second span, without a text, is moved like the first one."""
    plain, other = {"start": start, "end": end, "text": expected}, {"start": start, "end": start + 2}
    rows = {
        "Label Studio": [task(text, region(start, end, expected)), task(text, {**other, "labels": ["PER"]})],
        "JSON-MIN": [
            {"text": text, "label": [region(start, end, expected)], "annotator": 1, "annotation_id": 1},
            {"text": text, "label": [{**other, "labels": ["PER"]}], "annotator": 1, "annotation_id": 2},
        ],
        "doccano": [
            {"text": text, "entities": [{"start_offset": start, "end_offset": end, "label": "PER", "text": expected}]},
            {"text": text, "entities": [{"start_offset": start, "end_offset": start + 2, "label": "PER"}]},
        ],
        "Prodigy": [
            {"text": text, "spans": [{**plain, "label": "PER"}], "answer": "accept"},
            {"text": text, "spans": [{**other, "label": "PER"}], "answer": "accept"},
        ],
        "spans": [
            {"text": text, "spans": [{**plain, "type": "PER"}]},
            {"text": text, "spans": [{**other, "tag": "A"}]},
        ],
    }[tool]
    Path("a.json").write_text(json.dumps(rows), encoding="utf-8")
    first, second = marked("a.json")
    assert "".join(first[0].split()) == "BoBerg"
    assert second == ["Bo"]


def test_the_way_of_counting_is_reported(run, caplog):
    write_rows("a.jsonl", {"text": CRLF, "spans": [{"start": 7, "end": 9, "label": "PER", "text": "Bo"}]})
    printed = run("convert", "a.jsonl", "--to", "jsonl", "-o", "out.jsonl")
    assert "1 spans" in printed
    assert sum("a.jsonl: " in one.getMessage() and r"'\n'" in one.getMessage() for one in caplog.records) == 1
    (span,) = json.loads(Path("out.jsonl").read_text())["spans"]
    assert (span["start"], span["end"]) == (8, 10)
    assert r"'\n'" in run("check", "a.jsonl")
    caplog.clear()
    data = Table(".", {"train": "a.jsonl"}, {"text": "text", "spans": "spans"})
    assert list(data.corpus("train").columns["label"]) == ["O", "O", "O", "B-PER", "O", "O", "O"]
    assert any(r"'\n'" in one.getMessage() for one in caplog.records)


def test_texts_that_are_nowhere_at_their_offsets(fails):
    right = {"start": 0, "end": 2, "label": "PER", "text": "Bo"}
    wrong = {"start": 3, "end": 7, "label": "PER", "text": "Anna"}
    write_rows("a.jsonl", *({"text": "Bo left Anna.", "spans": own} for own in ([right], [right, wrong])))
    for command in (("check", "a.jsonl"), ("init", "a.jsonl"), ("convert", "a.jsonl", "--to", "jsonl", "-o", "b")):
        message = fails(*command)
        assert "a.jsonl:2: span 3..7 is 'left'" in message
        assert "'Anna'" in message
    with pytest.raises(InputError, match=r"a\.jsonl:2: .*'left'.*'Anna'"):
        Table(".", {"train": "a.jsonl"}, {"text": "text", "spans": "spans"}, misaligned="drop").corpus("train")
    assert not Path("b").exists()


def test_tokens_of_prodigy_are_compared():
    tokens = [{"text": "Bo", "start": 0, "end": 2, "id": 0}, {"text": "left", "start": 3, "end": 7, "id": 1}]
    span = {"start": 3, "end": 7, "token_start": 0, "token_end": 0, "label": "PER"}
    write_rows("a.jsonl", {"text": "Bo left", "tokens": tokens, "spans": [span], "answer": "accept"})
    with pytest.raises(InputError, match=r"a\.jsonl:1: .*'left'.*'Bo'"):
        read_annotated("a.jsonl")


def test_texts_of_standoff_files_are_compared():
    brat_folder()
    assert marked("brat/more") == [[]]
    Path("brat/a.ann").write_text("T1\tPER 3 10\tBo Berg\n", encoding="utf-8")  # UTF-16 code units
    assert marked("brat") == [["Bo Berg"], []]
    Path("brat/a.ann").write_text("T1\tX 2 4;11 14\tBo eft\n", encoding="utf-8")  # parts of words
    with pytest.raises(InputError, match="several parts"):
        Table(".", {"train": "brat"}, {"text": "text", "spans": "spans"}).corpus("train")
    Path("brat/a.ann").write_text("T1\tPER 3 10\tBo Beck\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.ann: .*'Bo Beck'"):
        read_annotated("brat")
    text = HEAD + f"#T_SP={ENTITY}|value\n\n\n#Text={SMILE} Bo left Anna\n"
    for start, form, expected in ((3, "Bo", "Bo"), (2, "Bo", "Bo"), (9, "Bo", None)):
        Path("a.tsv").write_text(f"{text}1-1\t0-1\t{SMILE}\t_\t\n1-2\t{start}-{start + 2}\t{form}\tPER\t\n")
        if expected is None:
            with pytest.raises(InputError, match=r"a\.tsv: .*'Bo'"):
                read_annotated("a.tsv")
        else:
            assert marked("a.tsv") == [[expected]]


# -- quoted entities -----------------------------------------------------------------------------------------

QUOTED = [
    {"text": "Bo met Jo in Oslo. Bo left Oslo.", "entities": ["Bo", "Jo", "Oslo", "Bo", "Oslo"]},
    {"text": "The river  Ulm\nfloods Bonn.", "entities": ["river Ulm", "Berlin"]},
]
PLACES = [[(0, 2), (7, 9), (13, 17), (19, 21), (27, 31)], [(4, 14)]]


def quoted(text_key="text", kind_key="type", **more):
    rows = []
    for row in QUOTED:
        found = [{text_key: one, kind_key: "X", **more} for one in row["entities"]]
        rows.append({**row, "entities": found})
    return rows


@pytest.mark.parametrize("keys", [{}, {"text_key": "name", "kind_key": "entity"}, {"start": None}])
def test_quoted_entities_are_aligned(run, caplog, keys):
    write_rows("a.jsonl", *quoted(**keys))
    run("convert", "a.jsonl", "--to", "jsonl", "-o", "out.jsonl")
    written = [json.loads(line)["spans"] for line in Path("out.jsonl").read_text().splitlines()]
    assert [[(one["start"], one["end"]) for one in spans] for spans in written] == PLACES
    assert sum("a.jsonl:2: 'Berlin'" in one.getMessage() for one in caplog.records) == 1


def test_quoted_entities_train(run, caplog):
    write_rows("a.jsonl", *quoted())
    assert "a.jsonl:2: 'Berlin'" in run("check", "a.jsonl")
    assert "'Berlin'" in run("init", "a.jsonl")
    assert any("a.jsonl:2: 'Berlin'" in one.getMessage() for one in caplog.records)
    caplog.clear()
    corpus = Table(".", {"train": "a.jsonl"}, {"text": "text", "spans": "entities"}).corpus("train")
    marked_words = [word for word, label in zip(*corpus.columns.values(), strict=True) if label != "O"]
    assert marked_words == ["Bo", "Jo", "Oslo", "Bo", "Oslo", "river", "Ulm"]
    assert any("a.jsonl:2: 'Berlin'" in one.getMessage() for one in caplog.records)
    assert [one.text for one in corpus.dropped] == ["Berlin"]


def test_entities_with_neither_text_nor_offsets():
    write_rows("a.jsonl", {"text": "Bo left.", "entities": [{"text": " ", "type": "PER"}]})
    with pytest.raises(InputError, match=r"a\.jsonl:1: entities\[0\]"):
        read_annotated("a.jsonl")


# -- invisible characters ------------------------------------------------------------------------------------

INVISIBLE = [  # a soft hyphen, a direction mark, a combining mark, a zero-width space before
    ("Jo\u00ad left", (0, 2)),
    ("He met \u200f\u05d0\u05e0 here", (8, 10)),
    ("Zoe\u0308 met", (0, 3)),
    ("He met \u200bBo Berg\u200b", (8, 15)),
]


@pytest.mark.parametrize("form", FORMATS)
def test_offsets_stay_at_invisible_characters(form, caplog):
    rows = [{"text": text, "spans": [{"start": a, "end": b, "label": "P"}]} for text, (a, b) in INVISIBLE]
    write_rows("a.jsonl", *rows)
    documents = read_annotated("a.jsonl")
    assert [[one[:3] for one in document.spans] for document in documents] == [[(*at, "P")] for _, at in INVISIBLE]
    assert [document.labels for document in documents[:3]] == [["B-P", "O"], ["O", "O", "B-P", "O"], ["B-P", "O"]]
    target = form if form in ("brat", "webanno", "cas-json") else f"out{SUFFIXES.get(form, '.jsonl')}"
    write_annotated(target, documents, form)
    found = read_annotated(target)
    whole = form in (*COLUMN_FORMATS, "webanno")
    assert sum("invisible" in one.getMessage() for one in caplog.records) == (4 if whole else 0)
    assert [one.labels for one in found] == [one.labels for one in documents]
    if not whole:
        assert [document.spans[0][:2] for document in found] == [at for _, at in INVISIBLE]
        assert [document.text.text for document in found] == [text for text, _ in INVISIBLE]


def test_trimmed_spans_are_reported(run, caplog):
    write_rows("a.jsonl", {"text": "Bo left.", "spans": [[0, 3, "PER"]]})
    run("convert", "a.jsonl", "--to", "doccano", "-o", "out.jsonl", "--misaligned", "expand")
    assert json.loads(Path("out.jsonl").read_text())["label"] == [[0, 2, "PER"]]
    assert any("a.jsonl:1: span 0..3" in one.getMessage() and "trimmed" in one.getMessage() for one in caplog.records)


def test_spans_of_parts_of_words_are_refused():
    document = AnnotatedDocument("first", tokenize("Bo left."), [TextSpan(0, 1, "PER")])
    with pytest.raises(InputError, match=r"first: span 0\.\.1 'B'"):
        write_annotated("out.conll", [document], "conll2003")
