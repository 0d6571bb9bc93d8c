"""CoNLL-U treebanks to train on."""

from pathlib import Path
from random import Random

from tests.fuzz.attempt import Attempt, Change
from tests.fuzz.damage import CHANGES, TEXT_CHANGES, damage


def of_a_word(change) -> Change:
    """A change of the fields of one word line, as one of the file."""

    def changed(draw: Random, data: bytes) -> bytes:
        lines = data.decode().split("\n")
        number = draw.choice(
            [i for i, line in enumerate(lines) if line[:1].isdigit() and line.split("\t")[0].isdigit()]
        )
        lines[number] = change(draw, lines[number].split("\t"))
        return "\n".join(lines).encode()

    return changed


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
KNOWN = (CHANGES, TEXT_CHANGES, BANK)


def conllu(draw: Random, folder: Path) -> Attempt:
    """A treebank spoiled, and a training that reads it."""
    done = damage(draw, folder / "bank.conllu", *KNOWN)
    return Attempt(done, ["fit", "-c", "treebank.yaml", f"--data.tags={draw.choice(('upos', 'xpos'))}"])
