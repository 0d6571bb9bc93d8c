"""structperc evaluate: the scores that fit prints, without its configuration."""

import json

import pytest

from structperc import Tagger
from structperc.analysis.bias_fitting import SegmentCounter
from structperc.chain import SegmentThreshold
from structperc.data import Conll
from structperc.tagging.labelled_files import read_gold
from tests.tiny import without_names


@pytest.fixture(scope="module")
def held_out(begun_with_columns):
    """The development data of the run, as columns with gold labels in IOB2."""
    lines = without_names((begun_with_columns.run / "predictions" / "dev.conll").read_text()).splitlines()
    path = begun_with_columns.folder / "dev.txt"
    path.write_text("".join(" ".join(line.split()[:-1]) + "\n" for line in lines))
    return path


def test_same_scores_as_fit(run, begun_with_columns, held_out, tmp_path):
    printed = run("evaluate", begun_with_columns.run / "model", held_out, "--json", tmp_path / "scores.json")
    assert printed.strip() in begun_with_columns.printed
    results = json.loads((begun_with_columns.run / "results.json").read_text())
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert {name: scores[name] for name in results["dev"]} == results["dev"]
    assert scores["types"] == results["types"]["dev"]
    assert (scores["sentences"], scores["tokens"]) == (4, 13)


def test_errors(run, begun_with_columns, held_out, tmp_path):
    """They agree with the scores, are printed after them and written."""
    model, files = begun_with_columns.run / "model", [tmp_path / "errors.json", tmp_path / "errors.html"]
    options = ("--errors", "--json", files[0], "--html", files[1], "--train", held_out)
    printed = run("evaluate", model, held_out, *options)
    assert printed.startswith(run("evaluate", model, held_out))
    assert "Kinds of errors" in printed
    scores = json.loads(files[0].read_text())
    assert scores["errors"]["semeval"]["strict"]["f1"] == scores["score"]
    assert scores["errors"]["novelty"]["not seen"]["gold"] == 0
    assert files[1].read_text().startswith("<!doctype html>")


def test_gold_in_another_scheme(run, begun_with_columns, held_out):
    other = held_out.with_name("iobes.txt")
    other.write_text(held_out.read_text().replace("B-", "S-"))
    model = begun_with_columns.run / "model"
    assert run("evaluate", model, other, "--labels", "IOBES") == run("evaluate", model, held_out)


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("Anna NNP\n", (), "no gold labels"),
        ("Anna NNP x\nsleeps VBZ O\n", (), "gold.txt:1: label 'x'"),
        ("Anna\nsleeps\n", (), "gold.txt: 1"),
        ("Anna NNP O O\nBo NNP B-PER O\n", (), "columns 3 and 4 contain labels; specify the gold column"),
        ("Anna B-PER O\nBo B-PER O\n", (), "column 2 contains labels of the model"),
        ("Anna NNP O\n", ("--json", "nowhere/s.json"), "nowhere"),
        ("Anna NNP O\n", ("--lables", "IOB1"), "--labels?"),
        ("Anna NNP O\n", ("--train", __file__), "--errors"),
    ],
)
def test_mistakes(fails, begun_with_columns, tmp_path, text, options, complaint):
    (tmp_path / "gold.txt").write_text(text)
    assert complaint in fails("evaluate", begun_with_columns.run / "model", tmp_path / "gold.txt", *options)


NUMBERED = 10 * (
    "1\tAnna\tB-PER\tO\n2\tLind\tI-PER\tO\n3\tleft\tO\tO\n\n1\tBo\tB-PER\tO\n2\tmet\tO\tO\n3\tRome\tB-LOC\tO\n\n"
)


@pytest.fixture(scope="module")
def numbered(begun):
    """A run whose training file has columns that are skipped, before the word and after the label."""
    return begun("numbered.tsv", NUMBERED, "--columns", "_", "word", "label", "_")


def f1(printed):
    return float(printed.partition("FB1:")[2].split()[0])


def test_training_file(run, numbered, said):
    model, file = numbered.run / "model", numbered.folder / "numbered.tsv"
    assert f1(run("evaluate", model, file)) == 100
    assert "gold is column 3" in said[0]
    tagged = without_names(run("tag", model, file))
    assert [line.split("\t")[-1] for line in tagged.splitlines()] == [
        fields[2] if len(fields) > 1 else "" for fields in (line.split("\t") for line in NUMBERED.splitlines())
    ]
    words = file.with_name("words.txt")
    words.write_text("Anna\nLind\nleft\n")
    assert without_names(run("tag", model, words)) == "Anna B-PER\nLind I-PER\nleft O\n"


@pytest.mark.parametrize("cells", [slice(0, 2), slice(0, 3), slice(1, 4)])
@pytest.mark.parametrize("command", ["evaluate", "tag"])
def test_files_of_other_columns_are_refused(fails, numbered, tmp_path, command, cells):
    rows = [line.split("\t")[cells] for line in NUMBERED.splitlines()]
    (tmp_path / "other.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    message = fails(command, numbered.run / "model", tmp_path / "other.tsv")
    assert f"{len(rows[0])} columns, but the training files have 4 (_ word label _)" in message
    assert "--columns" in message


def test_gold_of_files_with_predictions_is_found(run, fails, numbered, said, tmp_path):
    model, own, tagged, twice = numbered.run / "model", *(tmp_path / name for name in ("own", "tagged", "twice"))
    own.write_text(NUMBERED.replace("\tBo\tB-PER", "\tBo\tB-LOC"))  # 10 of 30 segments
    expected = run("evaluate", model, own)
    assert f1(expected) == pytest.approx(66.67)
    run("tag", model, own, "-o", tagged)
    run("tag", model, tagged, "-o", twice)
    assert tagged.read_text().startswith("#columns=_,word,label,_,predicted\t-X-\tO\t-X-\tO\n\n1\tAnna\t")
    assert run("evaluate", model, tagged) == run("evaluate", model, twice) == expected
    assert "predicted predicted2, gold is column 3" in said[-1]
    for options in ([], ["--gold", tagged]):
        assert ["F1", "66.67", "66.67", "+0.00"] in [
            line.split() for line in run("evaluate", tagged, twice, *options).splitlines()
        ]
    kept = numbered.run / "predictions" / "dev.conll"
    assert f1(run("evaluate", model, kept)) == 100
    assert "gold is column 2" in said[-1]
    assert "--gold FILE" in fails("evaluate", _tagged_words(run, model, tmp_path), tagged)


def test_predictions_are_no_gold(run, fails, numbered, tmp_path):
    words = _tagged_words(run, numbered.run / "model", tmp_path)
    assert words.read_text() == "#columns=word,predicted O\n\nAnna B-PER\nLind I-PER\nleft O\n"
    assert "gold labels" in fails("evaluate", numbered.run / "model", words)
    assert "no labels" in fails("init", words)
    assert "no column of labels" in run("check", words)


def _tagged_words(run, model, folder):
    (folder / "words.txt").write_text("Anna\nLind\nleft\n")
    run("tag", model, folder / "words.txt", "-o", folder / "labelled.txt")
    return folder / "labelled.txt"


def test_unknown_gold_labels_are_missed(run, numbered, said, tmp_path):
    text = "1\tBo\tB-PER\tO\n2\tmet\tO\tO\n3\tIBM\tB-ORG\tO\n4\tAG\tI-ORG\tO\n\n1\tBo\tB-PER\tO\n"
    (tmp_path / "other.tsv").write_text(text)
    run("evaluate", numbered.run / "model", tmp_path / "other.tsv", "--json", tmp_path / "scores.json")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["types"]["ORG"] == {"score": 0.0, "precision": 0.0, "recall": 0.0, "gold": 1}
    assert sum(row["gold"] for row in scores["types"].values()) == 3
    assert scores["token_accuracy"] <= 3 / 5
    assert "2 tokens with labels not seen in training, counted as errors: B-ORG (1), I-ORG (1)" in said[-1]


def test_segments_that_overlap(run, begun_with_columns, held_out, tmp_path):
    """Of a bias that finds all segments above a probability."""
    tagger = Tagger.load(begun_with_columns.run / "model")
    tagger.temperature = 1.0
    tagger.biases.add("all", SegmentThreshold(1e-12))
    tagger.save(tmp_path / "model")
    run("evaluate", tmp_path / "model", held_out, "--bias", "all", "--json", tmp_path / "scores.json")
    corpus = read_gold(tagger, str(held_out))
    expected = SegmentCounter(tagger, corpus)(tagger.biases.decoders["all"]).sum(0).T
    types = json.loads((tmp_path / "scores.json").read_text())["types"]
    for name, (correct, found, gold) in zip(tagger.labels.type_names, expected.tolist(), strict=True):
        assert found > gold
        assert types[name]["recall"] == pytest.approx(correct / gold)
        assert types[name]["precision"] == pytest.approx(correct / found)


def test_own_predictions_with_spaces_in_words(begun, run):
    row = {"tokens": ["New York", "and", "Oslo"], "labels": ["B-LOC", "O", "B-LOC"]}
    made = begun("train.jsonl", (json.dumps(row) + "\n") * 20)
    predictions = made.run / "predictions" / "dev.conll"
    assert run("evaluate", made.run / "model", predictions).strip() in made.printed
    assert run("tag", made.run / "model", predictions).splitlines()[2].split("\t")[0] == "New York"


# -- gold spans that labels cannot represent ---------------------------------------------------------------------


def texts(*rows):
    return "".join(json.dumps({"text": text, "spans": spans}) + "\n" for text, spans in rows)


FITTING = [("Anna Lind left Rome.", [[0, 9, "PER"], [15, 19, "LOC"]])] * 20
UNFIT = ("Bo left.", [[0, 9999, "PER"]])


@pytest.fixture(scope="module")
def marked(begun):
    """A run whose training file has a span that does not fit, with the option that drops it."""
    return begun("train.jsonl", texts(*FITTING, UNFIT))


def scores(run, model, path, *options):
    output = path.with_name("scores.json")
    run("evaluate", model, path, *options, "--json", output)
    return json.loads(output.read_text())


def test_dropped_gold_is_missed(run, file, marked, said):
    model, path = marked.run / "model", file(texts(*FITTING[:2], UNFIT), "a.jsonl")
    found = scores(run, model, path, "--errors")
    assert found["recall"] == pytest.approx(4 / 5)
    assert found["types"]["PER"]["gold"] == 3
    assert found["errors"]["semeval"]["strict"]["f1"] == found["score"]
    assert any("a.jsonl:3: span 0..9999" in line and "1 of 5 spans" in line for line in said)
    assert any("a.jsonl" in line and "PER 1" in line for line in said)
    assert scores(run, model, path, "--dropped", "ignored")["recall"] == 1


@pytest.mark.parametrize("columns", [(), ("--columns", "text=body", "spans=marks")])
def test_reading_options_of_the_model(run, fails, file, marked, said, columns):
    """Whatever the names of the columns are; options of the command come first."""
    model = marked.run / "model"
    text = texts(FITTING[0], ("Anna Lind left.", [[0, 8, "PER"], [100, 101, "ORG"]]))
    if columns:
        text = text.replace('"text"', '"body"').replace('"spans"', '"marks"')
    path = file(text, "a.jsonl")
    found = scores(run, model, path, *columns)
    assert found["types"]["PER"] == {"score": 1, "precision": 1, "recall": 1, "gold": 2}  # expanded
    assert found["types"]["ORG"]["gold"] == 1
    message = fails("evaluate", model, path, *columns, "--misaligned", "refuse")
    assert "a.jsonl:2: span 0..8" in message
    assert "--misaligned expand" in message
    assert scores(run, model, path, *columns, "--misaligned", "drop")["types"]["PER"]["recall"] == 1 / 2
    assert "misaligned" in fails("evaluate", model, path, *columns, "--misaligned", "x")


def test_overlapping_gold(run, fails, file, marked):
    model, path = marked.run / "model", file(texts(("Anna Lind left.", [[0, 9, "PER"], [5, 9, "PER"]])), "a.jsonl")
    assert "--overlaps longest" in fails("evaluate", model, path)
    assert scores(run, model, path, "--overlaps", "longest")["recall"] == 1 / 2
    assert scores(run, model, path, "--overlaps", "first", "--dropped", "ignored")["recall"] == 1
    assert "50.00" in run("evaluate", model, path, "--overlaps", "longest", "--candidates", "1")


def test_types_and_strictness_of_the_model(begun, run, fails, tmp_path):
    """As they are in training: a gold file has the names of the training file."""
    made = begun("train.txt", 10 * "Anna B-PER\nLind I-PER\nleft O\n\n")
    data = Conll(str(made.folder), {"train": "train.txt"}, ["word", "label"], types={"PER": "NAME"}, strict=True)
    tagger = Tagger.load(made.run / "model")
    tagger.allocate(data.label_set())
    tagger.training_files = data.training_files()
    tagger.save(tmp_path / "model")
    corpus = read_gold(Tagger.load(tmp_path / "model"), str(made.folder / "train.txt"))
    assert corpus.columns["label"][:3] == ["B-NAME", "I-NAME", "O"]
    (tmp_path / "bad.txt").write_text("Anna I-PER\nleft O\n")
    assert "bad.txt:1: 'I-PER'" in fails("evaluate", tmp_path / "model", tmp_path / "bad.txt")
