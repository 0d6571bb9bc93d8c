"""Vectors from neighbours against a dense computation, word by word."""

from math import log

import numpy as np
import pytest
import torch

from structperc.cli.main import main
from structperc.data.word_vectors import read_vectors
from structperc.encoders.cooccurrence import cooccurrence_vectors
from structperc.errors import InputError

rng = np.random.default_rng(3)
TEXTS = [[f"w{n}" for n in rng.zipf(1.4, 9) if n < 30] for _ in range(300)]


def naive(texts, width, window, cutoff):
    """All counts by loops, all singular values by numpy."""
    flat = [word for text in texts for word in text]
    words = [word for word in dict.fromkeys(flat) if flat.count(word) >= cutoff]
    V = len(words)
    counts = np.zeros((V, 2 * V))
    for text in texts:
        for i, word in enumerate(text):
            for j, other in enumerate(text):
                if i != j and abs(i - j) <= window and word in words and other in words:
                    counts[words.index(word), words.index(other) + V * (j < i)] += 1 / abs(i - j)
    of_contexts = counts.sum(0) ** 0.75
    information = np.zeros_like(counts)
    for w, c in zip(*counts.nonzero(), strict=True):
        share = of_contexts[c] / of_contexts.sum()
        information[w, c] = max(0.0, log(counts[w, c] / (counts[w].sum() * share)))
    left, values, _ = np.linalg.svd(information)
    found = left[:, :width] * np.sqrt(values[:width])
    return words, found / np.sqrt((found**2).sum(1).mean())


@pytest.mark.parametrize("window", [1, 3])
def test_dense_decomposition(window):
    words, vectors = cooccurrence_vectors(TEXTS, 5, window, 2)
    others, expected = naive(TEXTS, 5, window, 2)
    assert sorted(words) == sorted(others)
    order = [others.index(word) for word in words]
    products = torch.from_numpy(expected[order] @ expected[order].T).float()  # the same for either sign
    torch.testing.assert_close(vectors @ vectors.T, products, rtol=0, atol=1e-4)
    assert torch.equal(vectors, cooccurrence_vectors(TEXTS, 5, window, 2)[1])


def test_cooccurrence_within_sentences():
    texts = [["a", "b"], ["c", "d"]] * 3
    _, vectors = cooccurrence_vectors(texts, 2, 4, 1)
    joined = cooccurrence_vectors([["a", "b", "c", "d"]] * 3, 2, 4, 1)[1]
    assert not torch.allclose(vectors @ vectors.T, joined @ joined.T, atol=1e-2)


def test_too_few_words_are_refused():
    with pytest.raises(InputError, match=r"2 words .*width 2"):
        cooccurrence_vectors([["a", "b"]], 2, 1, 1)
    with pytest.raises(InputError, match=r"window .*0"):
        cooccurrence_vectors(TEXTS, 2, 0)


def test_command_writes_word_vectors(tmp_path, capsys):
    file, output = tmp_path / "train.txt", tmp_path / "vectors.safetensors"
    file.write_text("".join("".join(f"{word} O\n" for word in text) + "\n" for text in TEXTS if text))
    options = ["--width", "4", "--cutoff", "2"]
    assert main(["vectors", str(file), "-o", str(output), *options]) == 0
    words, vectors = cooccurrence_vectors(TEXTS, 4, 2, 2)
    assert f"vectors of {len(words)} words, width 4, from {sum(map(len, TEXTS)):,} tokens" in capsys.readouterr().out
    found = read_vectors(str(output))
    assert found[0] == words
    assert torch.equal(found[1], vectors)
    assert main(["vectors", str(file), "-o", str(tmp_path / "vectors.txt")]) == 2
    assert ".safetensors" in capsys.readouterr().err
