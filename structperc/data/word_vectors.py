"""Files of word vectors: text as written by word2vec, GloVe and fastText, binary of word2vec, NumPy, or safetensors."""

import json
import logging
from mmap import ACCESS_READ, mmap
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
FASTTEXT = b"\xba\x16\x4f\x2f"  # the first bytes of its binary files
logger = logging.getLogger("pytorch_lightning.structperc")


def read_vectors(path: str) -> tuple[list[str], Tensor]:
    """Read a file of word vectors.

    The end of the name shows the format:

    * .safetensors: that of `write_vectors`;
    * .npy: an array (V, D) of NumPy, with the words in NAME.words.txt next to NAME.npy, one per line;
    * .bin: the binary format of word2vec, a line with V and D, then each word, a space and D numbers float32;
    * others: text, a word and D numbers per line, separated by single spaces (words may contain spaces), optionally
      after a line with V and D; missing lines cause a warning.

    Environment variables in the path are expanded. `path`: path of the file. Returns v words and their vectors (V, D)
    float32; the first vector of a repeated word. Raises InputError: the file is missing, empty or incomplete, a model
    of fastText in binary form, or has lines of unequal width or numbers that are not finite; the message names the line
    or the word.
    """
    file = expand_path(path)
    if not file.is_file():
        raise InputError(f"{file}: no such file of word vectors")
    words, vectors = _READERS.get(file.suffix, _read_text)(file)
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
    return _checked(file, words, vectors)


def _read_numpy(file: Path) -> tuple[list[str], Tensor]:
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{file}: not a NumPy array ({error})") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise InputError(f"{file}: word vectors must be an array of numbers, one row per word")
    names = file.with_suffix(".words.txt")
    words = read_lines(names)
    if words and not words[-1]:
        words.pop()
    return _checked(file, words, torch.from_numpy(array.astype(np.float32, copy=False)), names)


def _read_word2vec(file: Path) -> tuple[list[str], Tensor]:
    with file.open("rb") as opened:
        if opened.read(4) == FASTTEXT:
            raise InputError(f"{file}: a model of fastText in binary form; use its vectors in text form, a .vec file")
        opened.seek(0)
        sizes = opened.readline(64).split()
        if len(sizes) != 2 or not all(map(bytes.isdigit, sizes)):
            raise InputError(f"{file}: not a binary file of word2vec; name text files .txt or .vec")
        count, width = map(int, sizes)
        at = opened.tell()
        data = mmap(opened.fileno(), 0, access=ACCESS_READ)
    words: list[str] = []
    if count * 4 * width > len(data):
        raise _incomplete(file, 0, count)
    vectors = np.empty((count, width), np.float32)
    for number in bar(range(count), f"reading {file.name}"):
        space = data.find(b" ", at)
        end = space + 1 + 4 * width
        if space < 0 or end > len(data):
            raise _incomplete(file, number, count)
        words.append(data[at:space].decode("utf-8", "replace").lstrip("\n"))  # some writers end vectors with a newline
        vectors[number] = np.frombuffer(data[space + 1 : end], "<f4")
        at = end
    return _checked(file, words, torch.from_numpy(vectors))


def _incomplete(file: Path, number: int, count: int) -> InputError:
    return InputError(f"{file}: the file ends after {number:,} of {count:,} vectors; it may be incomplete")


def _checked(file: Path, words: list[str], vectors: Tensor, names: Path | None = None) -> tuple[list[str], Tensor]:
    if vectors.ndim != 2 or len(words) != len(vectors) or not vectors.numel():
        place = f" in {names}" if names else ""
        raise InputError(f"{file}: {len(words)} words{place}, but {VECTORS} has shape {tuple(vectors.shape)}")
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


_READERS = {".safetensors": _read_safetensors, ".npy": _read_numpy, ".bin": _read_word2vec}
