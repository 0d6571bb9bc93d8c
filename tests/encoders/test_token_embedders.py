"""Vectors of words and of characters against one row, one filter at a time."""

import pytest
import torch

from structperc.data.word_vectors import read_vectors, write_vectors
from structperc.encoders import CharCNN, WordEmbedding
from structperc.encoders.token_embedders import StringVocabulary
from structperc.errors import InputError
from tests.encoders.texts import WORDS, batch, corpus

FLAT = [word for words in WORDS for word in words]


def learned(module, sentences=WORDS):
    torch.manual_seed(1)
    module.build_vocabulary(corpus(sentences))
    return module


def vectors(module, sentences=WORDS):
    return module(batch(module, sentences).inputs[0])


def test_ids_of_strings():
    known = StringVocabulary.frequent(["b", "a", "b", "c", "a", "b"], 2)
    assert (known.known, len(known)) == (["b", "a"], 3)
    assert known.numbers(["a", "c", "b", "", "a"]).tolist() == [2, 0, 1, 0, 2]
    assert "a" in known
    assert "c" not in known


def test_rows_of_words():
    module = learned(WordEmbedding(4, cutoff=2))
    rows = {word: row for row, word in enumerate(module.to_state(), 1)}
    assert set(rows) == {"Anna", "met", "Bo", "in", "Rome"}
    expected = torch.stack([module.table[rows.get(word, 0)] for word in FLAT])
    assert torch.equal(vectors(module), expected)
    unseen = vectors(module, [["Anna", "never", "seen"]])
    assert torch.equal(unseen, module.table[[rows["Anna"], 0, 0]])


def test_word_dropout():
    module = learned(WordEmbedding(3, word_dropout=0.5))
    torch.manual_seed(0)
    sentences = [["Anna"] * 4000]
    unknown = (vectors(module.train(), sentences) == module.table[0]).all(1).float().mean().item()
    assert 0.45 < unknown < 0.55
    assert not (vectors(module.eval(), sentences) == module.table[0]).all(1).any()


def test_folded_case_and_other_column():
    folded = learned(WordEmbedding(3, cutoff=1, fold=True))
    assert torch.equal(*vectors(folded, [["ANNA", "anna"]]))
    labels = learned(WordEmbedding(3, cutoff=1, column="label"))
    assert labels.to_state() == ["O"]
    with pytest.raises(InputError, match="'pos'"):
        learned(WordEmbedding(3, column="pos"))


def test_restored_state():
    module, again = learned(WordEmbedding(3)), WordEmbedding(3)
    again.load_state(module.to_state())
    again.load_state_dict(module.state_dict())
    assert torch.equal(vectors(again), vectors(module))


TEXT = "3 2\nRome 1 2\n. . 3 4\nAnna -0.5 1e-1\nRome 9 9\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_files_of_vectors(file, tmp_path):
    words, found = read_vectors(str(file))
    assert words == ["Rome", ". .", "Anna"]
    torch.testing.assert_close(found, torch.tensor([[1, 2], [3, 4], [-0.5, 0.1]]))
    write_vectors(tmp_path / "vectors.safetensors", words, found)
    again = read_vectors(str(tmp_path / "vectors.safetensors"))
    assert again[0] == words
    assert torch.equal(again[1], found)


def test_words_of_file_and_training_data(file):
    module = learned(WordEmbedding(2, cutoff=2, path=str(file)))
    rows = dict(zip(module.to_state(), module.table[1:].tolist(), strict=True))
    assert rows["Rome"] == [1, 2]
    assert rows[". ."] == [3, 4]
    assert {"met", "Bo", "in"} < set(rows)
    assert vectors(module, [["Rome"]]).tolist() == [[1, 2]]
    assert module.table.requires_grad
    assert not learned(WordEmbedding(2, path=str(file), frozen=True)).table.requires_grad


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Rome 1 2\nAnna 1\n", ":2: .*got 1"),
        ("Rome 1 2\nAnna 1 2 3\n", ":2: .*got 3"),
        ("Rome 1 2\n. . -inf 2\n", r":2: the vector of '\. \.' is not finite"),
        ("Rome 1 2\nAnna 1e39 2\n", ":2: the vector of 'Anna' is not finite"),
        ("", "no word vectors"),
    ],
)
def test_broken_files_are_named_with_their_line(tmp_path, text, message):
    (tmp_path / "v.txt").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_vectors(str(tmp_path / "v.txt"))


def test_fewer_vectors_than_announced(tmp_path, caplog):
    (tmp_path / "v.txt").write_text("3 2\nRome 1 2\nAnna 1 2\n", encoding="utf-8")
    assert read_vectors(str(tmp_path / "v.txt"))[0] == ["Rome", "Anna"]
    assert "v.txt: 2 vectors" in caplog.text


def test_invalid_files(file, tmp_path):
    with pytest.raises(InputError, match=r"width 2, .*5"):
        learned(WordEmbedding(5, path=str(file)))
    with pytest.raises(InputError, match=r"none\.txt"):
        learned(WordEmbedding(5, path=str(tmp_path / "none.txt")))
    (tmp_path / "bad.safetensors").write_bytes(b"no tensors")
    with pytest.raises(InputError, match="write_vectors"):
        read_vectors(str(tmp_path / "bad.safetensors"))
    write_vectors(tmp_path / "nan.safetensors", ["a", "b"], torch.tensor([[1.0], [torch.nan]]))
    with pytest.raises(InputError, match=r"nan\.safetensors: .*'b'"):
        read_vectors(str(tmp_path / "nan.safetensors"))
    write_vectors(tmp_path / "empty.safetensors", [], torch.zeros(0, 2))
    with pytest.raises(InputError, match="0 words"):
        read_vectors(str(tmp_path / "empty.safetensors"))
    with pytest.raises(InputError, match=r"2 .*3"):
        write_vectors(tmp_path / "v.safetensors", ["a", "b"], torch.zeros(3, 2))


def naive_char_cnn(module, word):
    """Each filter at each window of the word between zeros, then the maximum."""
    window_size, filters = module.window // 2, module.filters
    characters = [module.table[number] for number in module.known.numbers(word).tolist()]
    line = [torch.zeros(module.characters)] * window_size + characters + [torch.zeros(module.characters)] * window_size
    found = []
    for t in range(len(word)):
        window = torch.stack(line[t : t + module.window], 1)  # (characters, window)
        found.append((filters.weight * window).sum((1, 2)) + filters.bias)
    return torch.stack(found).amax(0)


@pytest.mark.parametrize("window", [1, 3, 5])
def test_char_cnn_is_the_maximum_of_each_filter(window):
    module = learned(CharCNN(width=6, characters=4, window=window))
    sentences = [*WORDS, ["x", "Ännchen", "unbekannt"]]
    expected = torch.stack([naive_char_cnn(module, word) for words in sentences for word in words])
    torch.testing.assert_close(vectors(module, sentences), expected)


def test_a_word_without_characters_is_zero():
    module = learned(CharCNN(width=3))
    empty = module(batch(module, [["Anna", "", "Bo"]]).inputs[0])
    assert not empty[1].any()
    assert empty.isfinite().all()
