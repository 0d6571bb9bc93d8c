"""Files of word vectors: text as written by word2vec, GloVe and fastText, or safetensors."""

import json
import logging
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from structperc.data.output import check_output_path, open_atomic
from structperc.data.text_files import expand_path, read_lines
from structperc.errors import InputError
from structperc.progress import bar

WORDS, VECTORS = "words", "vectors"
logger = logging.getLogger("pytorch_lightning.structperc")


def read_vectors(path: str) -> tuple[list[str], Tensor]:
    """Read a file of word vectors.

    Files named *.safetensors have the format of `write_vectors`, other files are text: a word and D numbers per line,
    separated by single spaces (words may contain spaces), optionally after a line with V and D; missing lines cause a
    warning. Environment variables in the path are expanded. `path`: path of the file. Returns v words and their vectors
    (V, D) float32; the first vector of a repeated word. Raises InputError: the file is missing or empty, or has lines
    of unequal width or numbers that are not finite; the message names the line.
    """
    file = expand_path(path)
    if not file.is_file():
        raise InputError(f"{file}: no such file of word vectors")
    words, vectors = _read_safetensors(file) if file.suffix == ".safetensors" else _read_text(file)
    first = {word: number for number, word in reversed(list(enumerate(words)))}
    if len(first) == len(words):
        return words, vectors
    kept = sorted(first.values())
    return [words[number] for number in kept], vectors[kept]


def write_vectors(path: str | Path, words: list[str], vectors: Tensor) -> None:
    """Write V words and their vectors (V, D) as safetensors: a tensor "vectors", the words as JSON in its metadata.

    The file is replaced atomically. Raises InputError: the path is invalid or cannot be written.
    """
    check_vectors_target(path)
    if len(words) != len(vectors):
        raise InputError(f"{path}: {len(words)} words but {len(vectors)} vectors")
    data = save({VECTORS: vectors.float().contiguous()}, {WORDS: json.dumps(words, ensure_ascii=False)})
    with open_atomic(path) as file:
        file.write(data)


def check_vectors_target(path: str | Path) -> None:
    """Raise InputError if vectors cannot be written to a path, or its name is not *.safetensors."""
    if Path(path).suffix != ".safetensors":
        raise InputError(f"{path}: vectors are written as safetensors; end the name in .safetensors")
    check_output_path(path)


def _read_safetensors(file: Path) -> tuple[list[str], Tensor]:
    try:
        with safe_open(file, "pt") as saved:
            words, vectors = json.loads((saved.metadata() or {})[WORDS]), saved.get_tensor(VECTORS).float()
    except (SafetensorError, KeyError, ValueError) as error:
        raise InputError(f"{file}: not a file written by write_vectors ({error})") from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{file}: {WORDS!r} must be a list of strings")
    if vectors.ndim != 2 or len(words) != len(vectors) or not vectors.numel():
        raise InputError(f"{file}: {len(words)} words, but {VECTORS} has shape {tuple(vectors.shape)}")
    if len(bad := (~vectors.isfinite()).any(1).nonzero()):
        raise InputError(f"{file}: the vector of {words[int(bad[0])]!r} is not finite; correct it or remove the word")
    return words, vectors


def _read_text(file: Path) -> tuple[list[str], Tensor]:
    words: list[str] = []
    rows: list[np.ndarray] = []
    lines = read_lines(file)
    while lines and not lines[-1].strip():
        lines.pop()
    counted = width = 0
    for number, line in enumerate(bar(lines, f"reading {file.name}"), 1):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(map(str.isdecimal, fields)):
            counted, width = map(int, fields)
            continue
        width = width or len(fields) - 1
        rows.append(_numbers(file, number, fields, width))
        words.append(" ".join(fields[:-width]))
    if not rows:
        raise InputError(f"{file}: the file has no word vectors")
    if len(rows) < counted:
        logger.warning("%s: %d vectors, but %d in its first line; the file may be incomplete", file, len(rows), counted)
    return words, torch.from_numpy(np.stack(rows))


def _numbers(file: Path, number: int, fields: list[str], width: int) -> np.ndarray:
    if len(fields) <= width or width < 1 or any(map(_is_number, fields[1:-width])):
        raise InputError(f"{file}:{number}: expected {max(width, 1)} numbers after the word, got {len(fields) - 1}")
    try:
        with np.errstate(over="ignore"):
            vector = np.array(fields[-width:], dtype=np.float32)
    except ValueError:
        raise InputError(f"{file}:{number}: expected {width} numbers after the word") from None
    if not np.isfinite(vector).all():
        word = " ".join(fields[:-width])
        raise InputError(f"{file}:{number}: the vector of {word!r} is not finite; correct it or remove the word")
    return vector


def _is_number(field: str) -> bool:
    try:
        return float(field) is not None
    except ValueError:
        return False
