"""Files of CoNLL columns: to tag, to train on, to be measured by."""

from pathlib import Path
from random import Random

from tests.fuzz.attempt import Attempt, Change
from tests.fuzz.damage import CHANGES, TEXT_CHANGES, damage


def of_a_line(change) -> Change:
    """A change of the fields of one line that has any, as one of the file."""

    def changed(draw: Random, data: bytes) -> bytes:
        lines = data.decode().split("\n")
        number = draw.choice([i for i, line in enumerate(lines) if line and not line.startswith("-DOC")])
        lines[number] = change(draw, lines[number].split(" "))
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
