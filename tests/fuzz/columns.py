"""Files of CoNLL columns, CoNLL-U treebanks and predictions: to tag, to train on, to be measured by."""

from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.fuzz.damage import CHANGES, TEXT_CHANGES, Attempt, Change, damage


def has_fields(line: str) -> bool:
    return bool(line) and not line.startswith("-DOC")


def of_a_line(change, separator: str = " ", chosen: Callable[[str], bool] = has_fields) -> Change:
    """A change of the fields of one line that has any, as one of the file."""

    def changed(draw: Random, data: bytes) -> bytes:
        lines = data.decode().split("\n")
        number = draw.choice([i for i, line in enumerate(lines) if chosen(line)])
        lines[number] = change(draw, lines[number].split(separator))
        return "\n".join(lines).encode()

    return changed


def a_line(text: str) -> Change:
    return of_a_line(lambda draw, fields: text)


def word(text: str) -> Change:
    return of_a_line(lambda draw, fields: " ".join([text, *fields[1:]]))


def label(text: str) -> Change:
    return of_a_line(lambda draw, fields: " ".join([*fields[:-1], text]))


COLUMNS: dict[str, Change] = {
    "field dropped": of_a_line(lambda draw, fields: " ".join(fields[:-1])),
    "word dropped": of_a_line(lambda draw, fields: " ".join(fields[1:])),
    "field added": of_a_line(lambda draw, fields: " ".join([*fields, "more"])),
    "fields swapped": of_a_line(lambda draw, fields: " ".join(fields[::-1])),
    "tabs in a line": of_a_line(lambda draw, fields: "\t".join(fields)),
    "commas in a line": of_a_line(lambda draw, fields: ",".join(fields)),
    "two spaces": of_a_line(lambda draw, fields: "  ".join(fields)),
    "two tabs": of_a_line(lambda draw, fields: "\t\t".join(fields)),
    "spaces around": of_a_line(lambda draw, fields: f"  {' '.join(fields)} "),
    "unknown label": label("B-ORG"),
    "no label of the scheme": label("PER"),
    "label of a dash": label("-"),
    "label B-": label("B-"),
    "label in lower case": label("b-per"),
    "label I- after O": label("I-LOC"),
    "label of IOBES": label("S-PER"),
    "label that is a number": label("1"),
    "label with a space of Unicode": label("B-PER\u00a0x"),
    "word of a space of Unicode": word("\u00a0"),
    "word of a mark of order": word("\u202eabc"),
    "word with combining marks": word("A\u0300" * 50),
    "word of an emoji": word("👩\u200d👩\u200d👧"),
    "word of control characters": word("\x01\x1b[2J\x7f"),
    "word with markup": word("<script>alert(1)</script>"),
    "long word": word("x" * 100_000),
    "word -DOCSTART-": word("-DOCSTART-"),
    "word of a hash": word("#"),
    "comment in a sentence": a_line("# a comment line"),
    "line of a space": a_line(" "),
    "line of a space of Unicode": a_line("\u00a0"),
    "all tabs": lambda draw, data: data.replace(b" ", b"\t"),
    "all commas": lambda draw, data: data.replace(b" ", b","),
    "no empty lines": lambda draw, data: data.replace(b"\n\n", b"\n"),
    "empty lines everywhere": lambda draw, data: data.replace(b"\n", b"\n\n"),
    "no documents": lambda draw, data: data.replace(b"-DOCSTART- -X- O\n\n", b""),
    "documents alone": lambda draw, data: b"-DOCSTART- -X- O\n\n" * 3,
    "words alone": lambda draw, data: b"".join(line.split(b" ")[0] + b"\n" for line in data.split(b"\n")),
    "long sentence": lambda draw, data: b"Anna NNP B-PER\nmet VBD O\n" * 1000,
    "all labels O": lambda draw, data: data.replace(b"B-PER", b"O").replace(b"B-LOC", b"O").replace(b"I-", b"B-"),
    "IOB1": lambda draw, data: data.replace(b"B-", b"I-"),
    "many types": lambda draw, data: b"".join(b"w%d X B-T%d\n" % (i, i) for i in range(300)),
}
KNOWN = (CHANGES, TEXT_CHANGES, COLUMNS)


def commands(draw: Random) -> tuple[str, list[str]]:
    """-> a file, and a command that reads it."""
    tagger = draw.choice(("sparse", "crf", "neural", "guided", "reranker"))
    model = f"runs/{tagger}/1/model"
    lattice = model if tagger in ("sparse", "reranker") else "runs/sparse/1/model"
    known = (
        ["tag", model, "dev.txt", "-o", "out.txt"],
        ["tag", model, "dev.txt"],
        ["tag", model, "dev.txt", "--columns", "word", "pos", "label"],
        ["tag", "runs/crf/1/model", "dev.txt", "-k", "3"],
        ["tag", "runs/guided/1/model", "dev.txt", "--order"],
        ["evaluate", model, "dev.txt"],
        ["check", "dev.txt"],
        ["reliability", "runs/crf/1/model", "runs/neural/1/model", "dev.txt"],
        ["candidates", lattice, "dev.txt", "--n", "1", "5"],
        ["explain", lattice, "dev.txt"],
        ["decisions", "runs/guided/1/model", "dev.txt"],
    )
    if draw.random() < 0.2:
        return draw.choice(("train.txt", "dev.txt")), ["fit", "-c", f"{draw.choice(('sparse', 'crf'))}.yaml"]
    return "dev.txt", draw.choice(known)


def columns(draw: Random, folder: Path) -> Attempt:
    """A file of columns spoiled, and a command that reads it."""
    file, arguments = commands(draw)
    return Attempt(damage(draw, folder / file, *KNOWN), arguments, ("out.txt",))


# -- treebanks -------------------------------------------------------------------------------------------------


def of_a_word(change) -> Change:
    """A change of the fields of one word line of a treebank, as one of the file."""
    return of_a_line(change, "\t", lambda line: line[:1].isdigit() and line.split("\t")[0].isdigit())


def field(number: int, text: str) -> Change:
    return of_a_word(lambda draw, fields: "\t".join([*fields[:number], text, *fields[number + 1 :]]))


BANK: dict[str, Change] = {
    "id 0": field(0, "0"),
    "id of text": field(0, "one"),
    "id with zeros": field(0, "0001"),
    "huge id": field(0, "9" * 5000),
    "id of other digits": field(0, "١"),
    "id twice": of_a_word(lambda draw, fields: "\t".join(fields) + "\n" + "\t".join(fields)),
    "id of a range": field(0, "2-1"),
    "id of an empty node": field(0, "1.0"),
    "no id": field(0, ""),
    "no form": field(1, ""),
    "form of an underscore": field(1, "_"),
    "form of a space": field(1, " "),
    "form with markup": field(1, "<b>&amp;"),
    "no tag": field(3, "_"),
    "empty tag": field(3, ""),
    "tag with a space": field(3, "NO UN"),
    "unknown tag": field(3, "SUCH"),
    "head of text": field(6, "head"),
    "nine fields": of_a_word(lambda draw, fields: "\t".join(fields[:-1])),
    "eleven fields": of_a_word(lambda draw, fields: "\t".join([*fields, "_"])),
    "spaces for tabs": of_a_word(lambda draw, fields: " ".join(fields)),
    "spaces for all tabs": lambda draw, data: data.replace(b"\t", b" "),
    "all tags underscores": lambda draw, data: b"".join(
        b"\t".join([*line.split(b"\t")[:3], b"_", b"_", *line.split(b"\t")[5:]]) + b"\n"
        if b"\t" in line
        else line + b"\n"
        for line in data.split(b"\n")
    ),
    "no empty lines": lambda draw, data: data.replace(b"\n\n", b"\n"),
    "comments alone": lambda draw, data: b"# newdoc\n# text = nothing\n\n",
    "comment in a sentence": of_a_word(lambda draw, fields: "# here\n" + "\t".join(fields)),
    "ranges alone": lambda draw, data: b"1-2\tx" + b"\t_" * 8 + b"\n\n",
}


def conllu(draw: Random, folder: Path) -> Attempt:
    """A treebank spoiled, and a training that reads it."""
    done = damage(draw, folder / "bank.conllu", CHANGES, TEXT_CHANGES, BANK)
    return Attempt(done, ["fit", "-c", "treebank.yaml", f"--data.tags={draw.choice(('upos', 'xpos'))}"])


# -- predictions to compare -------------------------------------------------------------------------------------

OPTIONS = (
    [],
    ["--gold", "gold.conll"],
    ["--scheme", "IOB1"],
    ["--scheme", "none"],
    ["--scheme", "BILOU"],
    ["--gold", "gold.conll", "--scheme", "IOBES"],
    ["--beta", "2"],
)


def predictions(draw: Random, folder: Path) -> Attempt:
    """One of the files of a comparison spoiled."""
    options = draw.choice(OPTIONS)
    if draw.random() < 0.2:  # folders of runs
        run = folder / f"runs/{draw.choice(('crf', 'neural'))}/1"
        done = damage(draw, run / "predictions/dev.conll", CHANGES, TEXT_CHANGES, COLUMNS)
        return Attempt(done, ["compare", "runs/crf/1", "runs/neural/1", "--split", "dev"])
    file = draw.choice(("a.conll", "b.conll", *(["gold.conll"] if "--gold" in options else [])))
    done = damage(draw, folder / file, CHANGES, TEXT_CHANGES, COLUMNS)
    more = ["b.conll"] if draw.random() < 0.2 else []
    return Attempt(done, ["compare", "a.conll", "b.conll", *more, *options])
