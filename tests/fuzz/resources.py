"""Files that features and encoders are made from: CRF++ templates, gazetteers, clusters, word vectors."""

import json
from pathlib import Path
from random import Random

import torch
from safetensors.torch import save_file

from tests.fuzz.damage import CHANGES, TEXT_CHANGES, Attempt, Change, damage


def line(text: str) -> Change:
    """A line put somewhere."""

    def changed(draw: Random, data: bytes) -> bytes:
        lines = data.split(b"\n")
        lines.insert(draw.randrange(len(lines)), text.encode())
        return b"\n".join(lines)

    return changed


def instead(old: bytes, new: bytes) -> Change:
    return lambda draw, data: data.replace(old, new)


TEMPLATES: dict[str, Change] = {
    "column out of range": line("U10:%x[0,2]"),
    "negative column": line("U10:%x[0,-1]"),
    "huge row": line("U10:%x[99999999999,0]"),
    "far row": line("U10:%x[-100000,0]"),
    "row of text": line("U10:%x[a,0]"),
    "macro left open": line("U10:%x[0,0"),
    "macro in upper case": line("U10:%X[0,0]"),
    "a CRF++ t macro": line("U10:%t[0,0]"),
    "no U nor B": line("X10:%x[0,0]"),
    "identifier twice": line("U00:%x[-1,0]"),
    "bag of words": line("U00:%x[-2,0]"),
    "template of 40 parts": line("U10:" + "/".join(f"%x[{i},0]" for i in range(-20, 20))),
    "no colon": line("U10%x[0,0]"),
    "U alone": line("U"),
    "comments alone": instead(b"U", b"#"),
    "edges alone": instead(b"U", b"B"),
}
PHRASES: dict[str, Change] = {
    "phrase twice": line("New York"),
    "empty phrase": line(""),
    "phrase of spaces": line("   "),
    "long phrase": line("x " * 5000),
    "columns": line("LOC\tRome"),
    "spaces of Unicode": line("\u00a0"),
    "very many phrases": lambda draw, data: b"".join(b"place %d\n" % i for i in range(20_000)),
}
PATHS: dict[str, Change] = {
    "path of text": line("01x\tword\t1"),
    "path of digits": line("012\tword\t1"),
    "no path": line("\tword\t1"),
    "no word": line("01\t\t1"),
    "path alone": line("0101"),
    "four fields": line("01\tword\t1\t2"),
    "frequency of text": line("01\tword\tmany"),
    "negative frequency": line("01\tword\t-3"),
    "word twice": line("1111\tAnna\t2"),
    "spaces for tabs": instead(b"\t", b" "),
    "word first": lambda draw, data: b"".join(
        b"\t".join(row.split(b"\t")[1::-1]) + b"\n" for row in data.split(b"\n")[:-1]
    ),
    "long path": line("01" * 5000 + "\tword\t1"),
}
VECTORS: dict[str, Change] = {
    "number of text": line("word 0.5 x 1"),
    "NaN": line("word nan 0 0"),
    "infinite": line("word 0 inf 0"),
    "beyond float32": line("word 1e39 0 0"),
    "one number less": line("word 1 2"),
    "one number more": line("word 1 2 3 4"),
    "commas": line("word 0,5 1,0 0,1"),
    "word alone": line("word"),
    "word twice": line("Anna 1 1 1"),
    "no word": line(" 1 2 3"),
    "tabs": instead(b" ", b"\t"),
    "wrong counts": instead(b"4 3", b"400 300"),
    "no counts": instead(b"4 3\n", b""),
    "hexadecimal": line("word 0x1 0x2 0x3"),
    "underscores in numbers": line("word 1_0 2 3"),
    "a width of its own": lambda draw, data: b"Anna 1 2 3 4 5\nRome 1 2 3 4 5\n",
}
TENSORS = {
    "integers": torch.ones(2, 3, dtype=torch.int64),
    "half precision": torch.ones(2, 3, dtype=torch.float16),
    "NaN inside": torch.full((2, 3), torch.nan),
    "infinite inside": torch.full((2, 3), torch.inf),
    "beyond float32": torch.full((2, 3), 1e300, dtype=torch.float64),
    "truth values": torch.ones(2, 3, dtype=torch.bool),
    "complex numbers": torch.ones(2, 3, dtype=torch.complex64),
    "another shape": torch.ones(6),
    "no dimension": torch.tensor(1.0),
    "more rows": torch.ones(3, 3),
    "another width": torch.ones(2, 4),
    "no width": torch.ones(2, 0),
}
WORDS = {
    "numbers for words": "[1, 2]",
    "nested words": '[["Anna"], "Rome"]',
    "mapping of words": '{"Anna": 0, "Rome": 1}',
    "words of text": '"AB"',
    "no JSON": "[Anna",
    "no words": "[]",
    "word twice": '["Anna", "Anna"]',
    "empty words": '["", ""]',
}


def templates(draw: Random, folder: Path) -> Attempt:
    """A CRF++ template file spoiled."""
    return Attempt(damage(draw, folder / "crfpp.txt", CHANGES, TEXT_CHANGES, TEMPLATES), ["fit", "-c", "crfpp.yaml"])


def gazetteers(draw: Random, folder: Path) -> Attempt:
    """A list of phrases spoiled."""
    return Attempt(damage(draw, folder / "places.txt", CHANGES, TEXT_CHANGES, PHRASES), ["fit", "-c", "sparse.yaml"])


def clusters(draw: Random, folder: Path) -> Attempt:
    """A file of clusters spoiled."""
    return Attempt(damage(draw, folder / "paths.txt", CHANGES, TEXT_CHANGES, PATHS), ["fit", "-c", "sparse.yaml"])


def vectors(draw: Random, folder: Path) -> Attempt:
    """Word vectors spoiled, as text or as tensors."""
    if draw.random() < 0.6:
        done = damage(draw, folder / "vectors.txt", CHANGES, TEXT_CHANGES, VECTORS)
        return Attempt(done, ["fit", "-c", "neural.yaml"])
    settings = folder / "neural.yaml"
    settings.write_text(settings.read_text().replace("vectors.txt", "vectors.safetensors"))
    return Attempt(f"tensors: {_tensors(draw, folder / 'vectors.safetensors')}", ["fit", "-c", "neural.yaml"])


def _tensors(draw: Random, file: Path) -> str:
    how = draw.choice(("damage", "tensor", "words", "name"))
    if how == "damage":
        return damage(draw, file, CHANGES)
    words, tensor, name = json.dumps(["Anna", "Rome"]), torch.ones(2, 3), "vectors"
    if how == "tensor":
        done, tensor = draw.choice(list(TENSORS.items()))
    elif how == "words":
        done, words = draw.choice(list(WORDS.items()))
    else:
        done = name = "another name"
    save_file({name: tensor}, file, {"words": words})
    return done
