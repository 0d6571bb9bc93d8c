"""Bisecting k-means of vectors against a split computed row by row; clusters of files in all formats."""

from collections import Counter

import numpy as np
import pytest
import torch

from structperc.cli.main import main
from structperc.data.word_vectors import read_vectors, write_vectors
from structperc.errors import InputError
from structperc.features import Clusters
from structperc.features.vector_clusters import ROUNDS, cluster_vectors

rng = np.random.default_rng(5)
CENTERS = [[1, 0.5, 0], [1, -0.5, 0], [-1, 0, 0.5], [-1, 0, -0.5]]
GROUPS = np.repeat(range(4), [9, 20, 5, 30])
BLOBS = np.array(CENTERS)[GROUPS] + rng.normal(0, 0.05, (len(GROUPS), 3))
POINTS = rng.normal(0.2, 1, (101, 6)).astype(np.float32)


def names(vectors):
    return [f"w{number}" for number in range(len(vectors))]


def split_row_by_row(vectors, balanced):
    """True for the rows on the second side of one split."""
    rows = [row / np.sqrt(sum(x * x for x in row)) for row in np.asarray(vectors, np.float64)]
    mean = sum(rows) / len(rows)
    direction = np.linalg.svd(np.array(rows) - mean)[2][0]
    direction *= np.sign(max(direction, key=abs))
    scores = [(row - mean) @ direction for row in rows]
    for _ in range(ROUNDS + 1):
        middle = sorted(scores)[(len(rows) + 1) // 2] if balanced else 0
        side = [score >= middle for score in scores]
        centers = [np.mean([row for row, s in zip(rows, side, strict=True) if s == one], axis=0) for one in (0, 1)]
        distances = [[((row - center) ** 2).sum() for center in centers] for row in rows]
        scores = [first - second for first, second in distances]
    return side


@pytest.mark.parametrize("balanced", [True, False])
def test_one_split(balanced):
    paths = cluster_vectors(names(POINTS), POINTS, levels=1, balanced=balanced)
    assert list(paths) == names(POINTS)
    assert [path == "1" for path in paths.values()] == split_row_by_row(POINTS, balanced)


@pytest.mark.parametrize("balanced", [True, False])
def test_each_split_is_one_of_the_vectors_below_it(balanced):
    deep = cluster_vectors(names(POINTS), POINTS, levels=3, balanced=balanced)
    below = [number for number, path in enumerate(deep.values()) if path[:2] == "01"]
    second = [deep[f"w{number}"][2] == "1" for number in below]
    assert second == split_row_by_row(POINTS[below], balanced)


def test_clear_clusters_are_recovered():
    paths = list(cluster_vectors(names(BLOBS), BLOBS, levels=2).values())
    groups = {(path, group) for path, group in zip(paths, GROUPS, strict=True)}
    assert len(groups) == len(set(paths)) == 4


def test_prefixes_are_the_paths_of_fewer_levels():
    short, long = (cluster_vectors(names(POINTS), POINTS, levels=levels, balanced=True) for levels in (3, 6))
    assert short == {word: path[:3] for word, path in long.items()}
    assert {len(path) for path in long.values()} == {6}


def test_balanced_sizes():
    sizes = Counter(cluster_vectors(names(POINTS), POINTS, levels=4, balanced=True).values()).values()
    assert len(sizes) == 16
    assert max(sizes) - min(sizes) == 1


def test_clusters_of_one_word_are_not_split():
    paths = cluster_vectors(names(POINTS), POINTS, levels=12, balanced=True)
    assert len(set(paths.values())) == len(POINTS)
    assert {len(path) for path in paths.values()} == {6, 7}


def test_length_of_vectors_and_words_without_one():
    longer = POINTS * rng.uniform(0.5, 2, (len(POINTS), 1))
    assert cluster_vectors(names(POINTS), longer) == cluster_vectors(names(POINTS), POINTS)
    longer[3] = 0
    assert cluster_vectors(names(POINTS), longer)["w3"]


@pytest.mark.parametrize(
    ("words", "vectors", "levels", "message"),
    [
        (["a", "b"], np.eye(3), 2, r"2 words.*\(3, 3\)"),
        (["a", "b"], np.ones(2), 2, r"2 words.*\(2,\)"),
        (["a"], np.eye(1), 2, "1 words"),
        (["a", "b", "a"], np.eye(3), 2, "'a' has several"),
        (["a", "b"], np.array([[1, 0], [np.nan, 1]]), 2, "'b' is not finite"),
        (["a", "b"], np.eye(2), 0, "levels .*0"),
        (["a", "b"], np.ones((2, 2)), 2, "same direction"),
    ],
)
def test_invalid_vectors(words, vectors, levels, message):
    with pytest.raises(InputError, match=message):
        cluster_vectors(words, vectors, levels)


def write_files(folder):
    """The same vectors in each format."""
    words = ["Rome", ". .", "naïve", *names(POINTS[3:])]
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(words, POINTS.tolist(), strict=True)]
    (folder / "glove.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "word2vec.txt").write_text("\n".join([f"{len(words)} 6", *lines]), encoding="utf-8")
    np.save(folder / "numpy.v1.npy", POINTS.astype(np.float64))
    (folder / "numpy.v1.words.txt").write_text("\n".join(words), encoding="utf-8")
    write_vectors(folder / "own.safetensors", words, torch.from_numpy(POINTS))
    words[1] = "._."  # the binary format cannot contain spaces
    for name, end in (("word2vec.bin", b"\n"), ("gensim.bin", b"")):
        rows = [word.encode() + b" " + row.tobytes() + end for word, row in zip(words, POINTS, strict=True)]
        (folder / name).write_bytes(b"%d 6\n" % len(words) + b"".join(rows))


def test_files_of_all_formats_give_the_same_clusters(tmp_path):
    write_files(tmp_path)
    expected = Clusters.from_vectors(tmp_path / "own.safetensors", levels=5).paths
    for name in ("glove.txt", "word2vec.txt", "numpy.v1.npy"):
        assert Clusters.from_vectors(tmp_path / name, levels=5).paths == expected
    expected["._."] = expected.pop(". .")
    for name in ("word2vec.bin", "gensim.bin"):
        assert Clusters.from_vectors(tmp_path / name, levels=5).paths == expected


def test_a_model_of_fasttext_is_refused(tmp_path):
    (tmp_path / "cc.en.300.bin").write_bytes((793712314).to_bytes(4, "little") + bytes(60))
    with pytest.raises(InputError, match=r"cc\.en\.300\.bin: .*fastText"):
        Clusters.from_vectors(tmp_path / "cc.en.300.bin")


def test_invalid_binary_files(tmp_path):
    write_files(tmp_path)
    cut = tmp_path / "cut.bin"
    cut.write_bytes((tmp_path / "gensim.bin").read_bytes()[:-10])
    with pytest.raises(InputError, match=r"cut\.bin: .* 100 of 101"):
        read_vectors(str(cut))
    cut.write_bytes(b"1000000000000 300\na ")
    with pytest.raises(InputError, match=r"cut\.bin: .* 0 of 1,000,000"):
        read_vectors(str(cut))
    cut.write_text("Rome 1 2\n")
    with pytest.raises(InputError, match=r"cut\.bin: not a binary"):
        read_vectors(str(cut))


def test_invalid_arrays(tmp_path):
    write_files(tmp_path)
    (tmp_path / "numpy.v1.words.txt").write_text("Rome\nParis\n")
    with pytest.raises(InputError, match=r"2 words in .*numpy\.v1\.words\.txt.*\(101, 6\)"):
        read_vectors(str(tmp_path / "numpy.v1.npy"))
    (tmp_path / "numpy.v1.words.txt").unlink()
    with pytest.raises(InputError, match=r"numpy\.v1\.words\.txt: no such file"):
        read_vectors(str(tmp_path / "numpy.v1.npy"))
    (tmp_path / "text.npy").write_text("Rome 1 2\n")
    with pytest.raises(InputError, match=r"text\.npy: not a NumPy array"):
        read_vectors(str(tmp_path / "text.npy"))
    np.save(tmp_path / "text.npy", np.array(["Rome"]))
    with pytest.raises(InputError, match=r"text\.npy: .* numbers"):
        read_vectors(str(tmp_path / "text.npy"))


def test_command_writes_clusters(tmp_path, capsys):
    write_files(tmp_path)
    source, output = str(tmp_path / "glove.txt"), str(tmp_path / "clusters.tsv")
    assert main(["vectors", "--clusters", source, "-o", output, "--levels", "4"]) == 0
    assert "16 clusters of 101 words" in capsys.readouterr().out
    assert Clusters(output).paths == Clusters.from_vectors(source, levels=4).paths
    assert main(["vectors", "--clusters", source, "-o", output, "--balanced"]) == 0
    assert Clusters(output).paths == Clusters.from_vectors(source, balanced=True).paths


@pytest.mark.parametrize("options", [[], ["--clusters", "glove.txt", "glove.txt"]])
def test_command_takes_texts_or_vectors(tmp_path, monkeypatch, capsys, options):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    assert main(["vectors", *options, "-o", "clusters.tsv"]) == 2
    assert "--clusters" in capsys.readouterr().err
    assert not (tmp_path / "clusters.tsv").exists()


@pytest.mark.parametrize("word", ["a\tb", " "])
def test_words_that_the_file_of_clusters_cannot_contain(tmp_path, word):
    with pytest.raises(InputError, match=r"clusters\.tsv: "):
        Clusters({word: "01"}).write(tmp_path / "clusters.tsv")
