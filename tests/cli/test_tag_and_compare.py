"""structperc tag and structperc compare, as users run them."""

import io
import json
import os
import re
import subprocess
import sys
import threading

import pytest
import torch

from structperc import Corpus, FeatureExtractor, LabelSet
from structperc.chain import KBest
from structperc.cli import tagging
from structperc.cli.main import main
from structperc.criteria import CRFLoss
from structperc.features.documents import CaseElsewhere
from structperc.scorers import SparseLinear
from structperc.taggers import Tagger
from structperc.training.predictions import short_names
from tests.tiny import without_names

WORDS = "Anna\nsleeps\n\nRome\nwaits\nfor\nher\n"
DOCUMENTS = "-DOCSTART- -X- O\n\nAnna x B-PER\nsleeps y O\n\nRome x B-LOC\n\n-DOCSTART- -X- O\n\nAnna x B-PER\n"


def columns(text):
    """Sentences of what tag prints as lists of lists of fields."""
    return [[line.split() for line in block.split("\n")] for block in without_names(text).strip().split("\n\n")]


# -- tag ------------------------------------------------------------------------------------------------------


def test_tag_adds_the_label_as_last_column(run, file, model, tagger):
    sentences = [["Anna", "sleeps"], ["Rome", "waits", "for", "her"]]
    found = columns(run("tag", model, file(WORDS)))
    assert [[word for word, _ in sentence] for sentence in found] == sentences
    assert [[label for _, label in sentence] for sentence in found] == tagger.tag(sentences)


def test_tag_to_a_file(run, file, model, tmp_path):
    printed = run("tag", model, file(WORDS))
    assert run("tag", model, file(WORDS), "-o", tmp_path / "out.txt") == ""
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == printed
    best = run("tag", model, file(WORDS), "-k", "2")
    assert run("tag", model, file(WORDS), "-k", "2", "--output", tmp_path / "out.txt") == ""
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == best


def test_tag_with_columns(run, file, model):
    turned = file("x Anna\ny sleeps\n\nx Rome\ny waits\nz for\ny her\n")
    labels = [[label for _, label in sentence] for sentence in columns(run("tag", model, file(WORDS, "plain.txt")))]
    for roles in (["_", "word"], ["pos", "word"], ["label", "word"]):
        found = columns(run("tag", model, turned, "--columns", *roles))
        assert [[fields[-1] for fields in sentence] for sentence in found] == labels
        assert [fields[:2] for sentence in found for fields in sentence][:2] == [["x", "Anna"], ["y", "sleeps"]]


def test_tag_and_evaluate_leave_comments_out(run, fails, file, model):
    text = "# id 7\nAnna B-PER\n# O\nsleeps O\n\n# id 8\nRome B-LOC\n"
    assert "1: 3 fields" not in fails("tag", model, file(text), "--columns", "word", "_")
    assert "--comments" in fails("evaluate", model, file("Anna B-PER\n# id 7\n"))
    given = ("--columns", "word", "_", "--comments")
    found = without_names(run("tag", model, file(text), *given)).splitlines()
    assert [len(line.split()) for line in found] == [3, 3, 3, 3, 0, 3, 3]
    assert [line.split()[:2] for line in found] == [line.split()[:2] for line in text.splitlines()]
    plain = file("Anna B-PER\n# O\nsleeps O\n\nRome B-LOC\n", "plain.txt")
    assert [one for one in found if " id " not in one] == without_names(run("tag", model, plain)).splitlines()
    options = ("--unit", "sentence")
    assert run("evaluate", model, file(text), "--comments", *options) == run("evaluate", model, plain, *options)


def test_fields_with_spaces(run, fails, file, model, tmp_path):
    text = "New York\tB-LOC\nsleeps\tO\n\nAnna\tB-PER\n"
    assert "--separator tab" in fails("evaluate", model, file(text))
    assert "New York" not in fails("evaluate", model, file("New York\tB-X\n"), "--separator", "space")
    run("tag", model, file(text), "--separator", "tab", "-o", tmp_path / "out.txt")
    lines = without_names((tmp_path / "out.txt").read_text()).splitlines()
    assert [line.count("\t") for line in lines] == [2, 2, 0, 2]
    assert lines[0].startswith("New York\tB-LOC\t")
    printed = run("evaluate", model, tmp_path / "out.txt", "--separator", "tab", "--unit", "sentence")
    assert "processed 3 tokens with 2 phrases" in printed
    assert "token accuracy" in run("compare", tmp_path / "out.txt", tmp_path / "out.txt")


def test_gold_in_another_notation(run, fails, file, model):
    usual = file("Anna B-PER\nsleeps O\nRome B-LOC\nwaits I-LOC\n", "usual.txt")
    other = file("Anna PER_u\nsleeps 0\nRome LOC_b\nwaits LOC_l\n", "other.txt")
    options = ("--unit", "sentence", "--columns", "word", "label")
    expected = run("evaluate", model, usual, *options)
    assert run("evaluate", model, other, *options, "--labels", "BILOU TYPE_b 0") == expected
    message = fails("evaluate", model, other, *options, "--labels", "IOB2")
    assert "other.txt:1: label 'PER_u'" in message
    assert "--labels 'BILOU TYPE_b 0'" in message
    assert "--labels" in fails("evaluate", model, other, *options, "--labels", "TYPE_b")


def test_tag_keeps_lines(run, file, model):
    text = (
        "-DOCSTART-\t-X-\tO\n\nAnna\tNNP\tI-PER \nsleeps  VBZ O\n\n\n Rome\tNNP\tI-LOC\n-DOCSTART- -X- O\n\nher\tPRP\tO"
    )
    plain = file("-DOCSTART-\n\nAnna\nsleeps\n\nRome\n-DOCSTART-\n\nher\n", "plain.txt")
    labels = iter([fields[-1] for s in columns(run("tag", model, plain)) for fields in s if fields[0] != "-DOCSTART-"])
    expected = []
    for line in text.split("\n"):
        own = line.rstrip()
        between = "\t" if "\t" in own else " "
        expected.append(own + between + ("O" if "DOCSTART" in own else next(labels)) if own else own)
    assert without_names(run("tag", model, file(text))).split("\n") == [*expected, ""]


def test_tag_without_columns(fails, run, file, model):
    for text, message in (
        (
            "\nAngela Merkel visited Stromburg\n\n\nShe left it\n",
            "text.txt: cannot tell running text from columns; set",
        ),
        ('{"a":1}\n{"b":[]}\n', "text.txt:1: there is neither a field 'tokens' nor 'text' among ['a']"),
        ('[{"a":1}]', "text.txt:1: expected a JSON object, got list"),
    ):
        assert message in fails("tag", model, file(text))
    for text in ("Angela Merkel visited Stromburg .\n", "She left.\nHe stayed!\n"):
        named, forced = ("--columns", "word"), ("--input", "columns")
        assert columns(run("tag", model, file(text), *named)) == columns(run("tag", model, file(text), *forced))
    for text in ("{}\n[1]\n", "Anna x\nBo .\n", ". .\n! .\n", "Anna\n\nBo\n", "{\n}\n", "Dr.\nNo.\n"):
        run("tag", model, file(text))


def test_tag_conllu(fails, file, model):
    lines = [f"{n}\t{word}\t_\tX" + 6 * "\t_" for n, word in enumerate(["Anna", "sleeps"], 1)]
    text = file("\n".join(["# sent_id = 1", *lines, ""]))
    assert f"{text}:1: this is CoNLL-U" in fails("tag", model, text)


def test_encodings(run, fails, file, model, tmp_path):
    path, labelled = tmp_path / "latin.txt", tmp_path / "gold.txt"
    path.write_bytes("Käthe\nAnna\n".encode("latin-1"))
    assert "--encoding latin-1" in fails("tag", model, path)
    found = run("tag", model, path, "--encoding", "latin-1", "--unit", "sentence")
    assert found == run("tag", model, file("Käthe\nAnna\n"), "--unit", "sentence")
    labelled.write_bytes("Käthe B-PER\nAnna O\n".encode("utf-16"))
    assert "--encoding utf-16" in fails("compare", labelled, labelled, "--gold", labelled)
    assert "100.00" in run("compare", labelled, labelled, "--gold", labelled, "--encoding", "utf-16")
    text = run("reliability", model, labelled, "--encoding", "utf-16", "--unit", "sentence")
    assert text == run("reliability", model, file("Käthe B-PER\nAnna O\n"), "--unit", "sentence")


def test_tag_reads_a_pipe(run, file, model, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(WORDS,))
    writer.start()
    found = run("tag", model, pipe)
    writer.join()
    assert found == run("tag", model, file(WORDS))


def test_tag_with_unit(run, file, model, tagger):
    path = file(DOCUMENTS)
    sentences, documents = [["Anna", "sleeps"], ["Rome"], ["Anna"]], [0, 0, 1]
    together, alone = tagger.tag(sentences, documents), tagger.tag(sentences)
    assert together != alone

    def labels(*options):
        return [
            [fields[-1] for fields in s] for s in columns(run("tag", model, path, *options)) if s[0][0] != "-DOCSTART-"
        ]

    assert labels() == labels("--unit", "document") == together
    assert labels("--unit", "sentence") == alone


def test_tag_k_best(run, file, model, tagger):
    text = run("tag", model, file(WORDS), "-k", "3", "--unit", "sentence")
    blocks = [block.split("\n") for block in without_names(text).strip().split("\n\n")]
    found = tagger.kbest([["Anna", "sleeps"], ["Rome", "waits", "for", "her"]], 3)
    assert len(blocks) == 6
    for (head, *lines), (rank, one) in zip(blocks, [(r, c) for cs in found for r, c in enumerate(cs, 1)], strict=True):
        match = re.fullmatch(r"# (\d+) score (\S+) log-probability (\S+)", head)
        assert int(match[1]) == rank
        assert float(match[2]) == pytest.approx(one.score, rel=1e-5)
        assert float(match[3]) == pytest.approx(one.log_probability, abs=1e-6)
        assert [line.split()[1] for line in lines] == one.labels


def test_tag_k_best_reads_whole_documents(run, file, tmp_path, monkeypatch):
    corpus = Corpus.from_sentences([{"word": ["Then", "Ford", "left"]}, {"word": ["ford", "spoke"]}], documents=[0, 0])
    features = FeatureExtractor(["case[0]"], cutoff=1, documents={"case": CaseElsewhere()})
    features.fit(corpus)
    tagger = Tagger(features, SparseLinear(), CRFLoss(), KBest(1))
    tagger.allocate(LabelSet(("O", "B-PER")))
    torch.nn.init.normal_(tagger.scorer.node)
    tagger.save(tmp_path / "model")
    path = file("-DOCSTART-\n\nThen\nFord\nleft\n\nford\nspoke\n")
    whole = run("tag", tmp_path / "model", path, "-k", "1")
    monkeypatch.setattr(tagging, "MAX_LISTED", 1)
    assert run("tag", tmp_path / "model", path, "-k", "1") == whole
    monkeypatch.setattr(tagging, "chunk_bounds", lambda *given: [0, 1, 2])
    assert run("tag", tmp_path / "model", path, "-k", "1") != whole


def test_tag_k_best_of_perceptron(run, file, trained):
    text = run("tag", trained.folder / "model", file("Anna NNP B-NP\nleft VBD B-VP\n"), "-k", "2")
    assert text.count("# ") == 2
    assert "probability" not in text


def test_tag_gives_the_labels_of_the_run(run, trained, tmp_path):
    assert trained.again("predict", f"--ckpt_path={trained.folder}/checkpoints/best.ckpt", "--data.predict=dev") == 0
    predicted = trained.folder / "predictions" / "dev.conll"
    roles = ["word", "pos", "chunk", "evidence", "label", "predicted"]
    run("tag", trained.folder / "model", predicted, "--columns", *roles, "-o", tmp_path / "tagged")
    rows = [line.split() for line in (tmp_path / "tagged").read_text().splitlines() if line and "DOCSTART" not in line]
    assert len(rows) > 100
    assert [row[-1] for row in rows] == [row[-2] for row in rows]
    assert len({row[-1] for row in rows}) > 1


class ClosedPipe(io.StringIO):
    """What `structperc tag ... | head` leaves of standard output."""

    def write(self, _):
        raise BrokenPipeError

    def writelines(self, lines):
        self.write("".join(lines))


def test_tag_into_closed_output(fails, file, model, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert "standard output is closed" in fails("tag", model, file(WORDS))


@pytest.mark.parametrize("k", [[], ["-k", "2"]])
def test_tag_into_closed_pipe(model, file, monkeypatch, k):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", ClosedPipe())
        assert main(["tag", str(model), str(file(WORDS)), *k]) in (0, 1)


def test_tag_without_a_model(fails, file, tmp_path):
    assert str(tmp_path / "none") in fails("tag", tmp_path / "none", file(WORDS))


def test_tag_without_a_file(fails, model, tmp_path):
    assert str(tmp_path / "none") in fails("tag", model, tmp_path / "none")


@pytest.mark.parametrize("k", ["0", "-1"])
def test_tag_with_a_k_below_one(fails, file, model, k):
    assert f"-k must be >= 1, got {k}" in fails("tag", model, file(WORDS), "-k", k)


def test_tag_with_too_few_columns(fails, file, trained):
    message = fails("tag", trained.folder / "model", file(WORDS))
    assert "text.txt: 1 column" in message
    assert "pos and chunk" in message


def test_tag_without_a_required_column(fails, file, trained):
    message = fails("tag", trained.folder / "model", file("Anna NNP\n"), "--columns", "word", "pos")
    assert "'chunk'" in message
    assert "text.txt" in message


def test_tag_without_words(fails, file, model):
    assert "word" in fails("tag", model, file(WORDS), "--columns", "pos")


def test_tag_an_empty_file(fails, file, model):
    assert "no tokens" in fails("tag", model, file(""))


@pytest.mark.parametrize("k", [[], ["-k", "2"]])
def test_tag_into_missing_folder(fails, file, model, tmp_path, k):
    assert str(tmp_path / "nowhere") in fails("tag", model, file(WORDS), "-o", tmp_path / "nowhere" / "out.txt", *k)


@pytest.mark.parametrize("options", [["--unit", "paragraph"], ["-k", "many"], ["--colums", "word"], []])
def test_tag_called_wrongly(options, fails):
    assert "error: tag: " in fails("tag", *(["model", "file"] if options else []), *options)


# -- compare --------------------------------------------------------------------------------------------------

GOLD = "Anna B-PER\nsleeps O\n\nRome B-LOC\nwaits O\n"


def table_of(printed):
    """Rows of a table by name, "" for the heading."""
    rows = [re.split(r" {2,}", line.rstrip()) for line in printed.splitlines() if line]
    return {name: " ".join(cells).split() for name, *cells in rows}


def test_compare_of_hand_worked_files(run, file):
    gold = file(GOLD, "gold.txt")
    a = file(GOLD.replace("B-LOC", "B-PER"), "a.txt")
    b = file("Anna O\nsleeps O\n\nRome B-LOC\nwaits B-LOC\n", "b.txt")
    rows = table_of(run("compare", a, b, "--gold", gold))
    assert rows[""] == ["a.txt", "b.txt", "difference"]
    # a: one of two segments right, two found. b: one of two right, two found.
    assert rows["F1"] == ["50.00", "50.00", "+0.00"]
    # tokens: a errs at Rome, b at Anna and waits
    assert rows["token accuracy"] == ["75.00", "50.00", "-25.00"]
    assert rows["sentence accuracy"] == ["50.00", "0.00", "-50.00"]
    # only a right: Anna, waits; only b right: Rome; exact binomial over 3
    assert rows["tokens"] == ["2", "1", "1"]
    assert rows["sentences"] == ["1", "0", "1"]


def test_columns_of_compare(run, file):
    gold = file(GOLD, "gold.txt")
    wide = file("Anna NNP B-NP B-PER\nsleeps VBZ B-VP O\n\nRome NNP B-NP B-LOC\nwaits VBZ B-VP O\n", "wide.txt")
    rows = [line.split() for line in run("compare", gold, wide, "--gold", gold).splitlines()]
    assert ["F1", "100.00", "100.00", "+0.00"] in rows


def test_compare_of_labels_without_segments(run, file):
    gold, other = file("a NN\nb VB\n", "gold.txt"), file("a NN\nb NN\n", "other.txt")
    text = run("compare", gold, other, "--gold", gold, "--scheme", "none")
    assert "F1" not in text
    assert "50.00" in text


def test_compare_in_another_scheme(fails, run, file):
    gold = file("Anna S-PER\nSmith O\n", "gold.txt")
    message = fails("compare", gold, gold, "--gold", gold, "--scheme", "IOB2")
    assert all(part in message for part in ("gold.txt, sentence 1, token 1:", "'S-PER'", "IOB2", "--labels IOBES"))
    for scheme in ([], ["--scheme", "IOBES"], ["--labels", "IOBES"]):
        assert "100.00" in run("compare", gold, gold, "--gold", gold, *scheme)
    assert "IOB7" in fails("compare", gold, gold, "--gold", gold, "--scheme", "IOB7")


def test_compare_in_any_scheme(run, fails, file):
    """One of three tokens is wrong in a, none in b."""
    words, predicted = ["Anna", "Bo", "sleeps"], {"a": ["B-PER", "I-PER", "O"], "b": ["B-PER", "B-PER", "O"]}

    def write(name, *columns):
        return file("".join(" ".join(fields) + "\n" for fields in zip(words, *columns, strict=True)), name)

    a, b = (write(name, labels) for name, labels in predicted.items())
    scores = []
    for scheme, letters in (("IOB1", "IB"), ("IOB2", "BB"), ("IOBES", "SS"), ("BILOU", "UU")):
        labels = [*(f"{letter}-PER" for letter in letters), "O"]
        gold = write(f"gold_{scheme}", labels)
        beside = [write(f"{name}_beside_{scheme}", labels, own) for name, own in predicted.items()]
        for options in ([], ["--labels", scheme], ["--scheme", "IOB2"]):
            for places in ([a, b, "--gold", gold], beside):
                rows = table_of(run("compare", *places, *options))
                scores.append(
                    {name: row for name, row in rows.items() if name and name[-1] != ":" and "McN" not in name}
                )
    assert all(one == scores[0] for one in scores)
    assert scores[0]["F1"] == ["0.00", "100.00", "+100.00"]
    assert scores[0]["token accuracy"] == ["66.67", "100.00", "+33.33"]
    assert scores[0]["tokens"] == ["0", "1", "1"]
    mixed = write("mixed", ["I-PER", "O", "B-PER"])
    assert "mixed: " in fails("compare", a, b, "--gold", mixed)


@pytest.mark.parametrize(
    "other",
    [GOLD.replace("Rome", "Roma"), GOLD.replace("\n\n", "\n"), GOLD + "\nmore O\n"],
    ids=["words", "sentences", "length"],
)
def test_compare_of_different_texts(fails, file, other):
    gold, bad = file(GOLD, "gold.txt"), file(other, "bad.txt")
    assert "bad.txt" in fails("compare", gold, bad, "--gold", gold)
    assert "bad.txt" in fails("compare", bad, gold, "--gold", gold)


def test_compare_without_a_file(fails, file, tmp_path):
    gold = file(GOLD, "gold.txt")
    for arguments in ((gold, tmp_path / "none", gold), (gold, gold, tmp_path / "none")):
        assert str(tmp_path / "none") in fails("compare", arguments[0], arguments[1], "--gold", arguments[2])


PREDICTED = "Anna NNP B-PER B-PER\nsleeps VBZ O O\n\nRome NNP B-LOC B-PER\nwaits VBZ O O\n"


def test_compare_with_gold_column(run, file):
    gold, a = file(GOLD, "gold.txt"), file(PREDICTED, "a.txt")
    b = file(PREDICTED.replace("B-LOC B-PER", "B-LOC B-LOC"), "b.txt")
    assert run("compare", a, b) == run("compare", a, b, "--gold", gold)


@pytest.mark.parametrize(
    "text",
    [
        GOLD,  # words and one label
        "Anna NNP B-PER\nsleeps VBZ O\n\nRome NNP B-LOC\nwaits VBZ O\n",  # other labels
        "Anna B-NP B-PER\nsleeps O O\n\nRome B-NP B-LOC\nwaits O O\n",  # no label but O in common
    ],
    ids=["words", "pos", "chunks"],
)
def test_compare_needs_gold(fails, file, text):
    a, good = file(text, "a.txt"), file(PREDICTED, "b.txt")
    for places in ((a, a), (good, a), (a, good)):
        message = fails("compare", *places)
        assert "a.txt: " in message
        assert "--gold" in message


def test_compare_of_different_gold(fails, file):
    a, b = file(PREDICTED, "a.txt"), file(PREDICTED.replace("B-LOC B-PER", "O B-PER"), "b.txt")
    assert "b.txt: " in fails("compare", a, b)


def test_compare_accepts_predictions_of_nothing(run, file):
    a, b = file(PREDICTED, "a.txt"), file(re.sub(r"\S+\n", "O\n", PREDICTED), "b.txt")
    assert "token accuracy" in run("compare", a, b)


def test_compare_several(run, file):
    gold = file(GOLD, "gold.txt")
    a, b = file(GOLD.replace("B-LOC", "B-PER"), "a.txt"), file(GOLD.replace("B-PER", "O"), "b.txt")
    text = run("compare", a, b, gold, "--gold", gold, "--beta", "2")
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:4]}
    assert text.splitlines()[0].split() == ["F2", "precision", "recall", "tokens", "sentences"]
    # a: one of two found is right, two are wanted; b: one of one
    assert rows["a.txt"] == ["50.00", "50.00", "50.00", "75.00", "50.00"]
    assert rows["b.txt"] == ["55.56", "100.00", "50.00", "75.00", "50.00"]
    assert rows["gold.txt"] == ["100.00"] * 5
    pairs = [line.split()[:2] for line in text.splitlines()[-3:]]
    assert pairs == [["a.txt", "b.txt"], ["a.txt", "gold.txt"], ["b.txt", "gold.txt"]]


def test_compare_runs(run, trained, tmp_path):
    """The folder of a run stands for its predictions; names are as long as they must be."""
    other = tmp_path / "other" / "1"
    (other / "predictions").mkdir(parents=True)
    for split in ("dev", "test"):
        text = (trained.folder / "predictions" / f"{split}.conll").read_text()
        (other / "predictions" / f"{split}.conll").write_text(re.sub(r"\S+\n", "O\n", text))
    text = run("compare", trained.folder, other)
    assert text.splitlines()[0].split() == ["runs/1", "other/1", "difference"]
    files = [folder / "predictions" / "test.conll" for folder in (trained.folder, other)]
    assert run("compare", *files) == run("compare", trained.folder, files[1]) == text
    score = json.loads((trained.folder / "results.json").read_text())["dev"]["score"]
    rows = {
        line[:20].strip(): line[20:].split()
        for line in run("compare", trained.folder, other, "--split", "dev").splitlines()
    }
    assert rows["F1"] == [f"{100 * score:.2f}", "0.00", f"{-100 * score:+.2f}"]


def test_compare_a_run_without_predictions(fails, trained, tmp_path):
    assert "predictions/test.conll" in fails("compare", trained.folder, tmp_path)
    (tmp_path / "predictions").mkdir()
    (tmp_path / "predictions" / "dev.conll").write_text(PREDICTED)
    assert "--split" in fails("compare", trained.folder, tmp_path)


def test_compare_without_labels(fails, file):
    gold = file("Anna\nsleeps\n", "gold.txt")
    a = file("Anna NNP\nsleeps VBZ\n", "a.txt")
    assert "gold.txt: " in fails("compare", a, a, "--gold", gold, "--scheme", "none")


def test_compare_one_with_nothing(fails, file):
    assert "two or more" in fails("compare", file(PREDICTED), "--gold", file(GOLD, "gold.txt"))


def test_compare_with_a_bad_gamma(fails, file):
    a = file(PREDICTED)
    assert "beta" in fails("compare", a, a, "--beta", "0")
    assert "beta" in fails("compare", a, a, a, "--beta", "-1")


@pytest.mark.parametrize(
    ("places", "names"),
    [
        (["x/a.txt", "y/b.txt"], ["a.txt", "b.txt"]),
        (["x/a.txt", "y/a.txt"], ["x/a.txt", "y/a.txt"]),
        (["a.txt", "a.txt"], ["a.txt", "a.txt"]),
        (["runs/ml/1", "runs/mce/1"], ["ml/1", "mce/1"]),
        (["runs/ml/1/model"], ["ml/1"]),
        (["runs/ml/1/predictions/dev.conll", "runs/ml/2"], ["ml/1", "ml/2"]),
        (["1", "2"], ["1", "2"]),
        (["model"], ["model"]),
    ],
)
def test_short_names(places, names):
    assert short_names(places) == names


def test_classes_of_the_working_directory(tmp_path):
    """As the installed script, whose search path has no present folder."""
    (tmp_path / "own.py").write_text("class Mine:\n    pass\n")
    code = "from structperc.cli.main import main; main(['weights']); import own"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
