"""Inference against the reference: the same order, labels and scores."""

import copy

import pytest
import torch
from reference import Reference, Sentence
from tagged import Weights, batch_of, draw_weights, model_of, reference_of, sentences, set_weights

TEMPLATES = {"A": ["shen2007_a"], "B": ["shen2007_b"], "E": ["shen2007_e"], "words": ["t[-1] t[2] w[1]", "t[1] w[-2]"]}
ORDERS = ["easiest", "left-to-right"]


def weighted(templates, L, beam, order, seed, most=2):
    """A model with random weights, and the reference with the same."""
    model = model_of(templates, L, 2**8, beam=beam, order=order)
    draw_weights(model, seed, most)
    reference = reference_of(model)
    reference.weights = Weights(model)
    return model, reference


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("beam", [1, 2, 3, 7])
@pytest.mark.parametrize("templates", TEMPLATES.values(), ids=TEMPLATES)
def test_same_decisions_as_the_reference(templates, beam, order):
    for seed in range(3):
        L, made = 3 + seed % 2, sentences(seed, 5, 3)
        model, reference = weighted(templates, L, beam, order, seed, most=1 + seed)
        found = model.decode(batch_of(made, spare=seed))
        for row, sentence in enumerate(made):
            labels, steps, V = reference.decode(sentence)
            T = len(labels)
            assert found.order[row, :T].tolist() == steps
            assert found.labels[row, :T].tolist() == labels
            assert found.scores[row].item() == V
            assert found.labels[row, T:].eq(0).all()
            assert found.order[row, T:].eq(-1).all()


@pytest.mark.parametrize("order", ORDERS)
def test_batches_equal_single_sentences(order):
    """To the same bits, with any weights."""
    made = sentences(11, 16, 4, longest=16)
    model = model_of(["shen2007_c"], 4, order=order)
    torch.manual_seed(0)
    for p in model.parameters():
        torch.nn.init.normal_(p)
    together = model.decode(batch_of(made))
    for row, sentence in enumerate(made):
        alone = model.decode(batch_of([sentence]))
        T = len(sentence.words)
        assert torch.equal(alone.labels[0], together.labels[row, :T])
        assert torch.equal(alone.order[0], together.order[row, :T])
        assert torch.equal(alone.scores[0], together.scores[row])


def test_all_scores_equal():
    """The first token comes first, and the first label, whatever the beam."""
    made = sentences(3, 5, 3)
    for beam in (1, 3, 50):
        found = model_of(["shen2007_c"], 3, beam=beam).decode(batch_of(made))
        for row, sentence in enumerate(made):
            assert found.order[row, : len(sentence.words)].tolist() == list(range(len(sentence.words)))
        assert not found.labels.any()
        assert not found.scores.any()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("beam", [2, 40])
def test_one_label_and_beams_wider_than_there_are_states(beam, order):
    for L in (1, 2):
        made = sentences(5, 6, L)
        model, reference = weighted(["shen2007_c"], L, beam, order, 1)
        found = model.decode(batch_of(made))
        for row, sentence in enumerate(made):
            labels, steps, V = reference.decode(sentence)
            assert found.labels[row, : len(labels)].tolist() == labels
            assert found.order[row, : len(labels)].tolist() == steps
            assert found.scores[row].item() == V


@pytest.mark.parametrize("order", ORDERS)
def test_nothing_to_label(order):
    model = model_of(["shen2007_c"], 3, order=order)
    empty = Sentence([], [], [])
    for made in ([], [empty], [empty, empty]):
        found = model.decode(batch_of(made, spare=2 * bool(made)))
        assert found.labels.shape == found.order.shape == (len(made), 2 * bool(made))
        assert found.scores.tolist() == [0] * len(made)


def test_without_context_all_labels_are_the_best_ones():
    made = sentences(9, 8, 4)
    model, reference = weighted([], 4, 3, "easiest", 2)
    found = model.decode(batch_of(made))
    for row, sentence in enumerate(made):
        scores = [[sum(reference.weights[f, y] for f in features) for y in range(4)] for features in sentence.static]
        assert found.labels[row, : len(scores)].tolist() == [own.index(max(own)) for own in scores]
        assert found.scores[row].item() == sum(map(max, scores))


def test_example_of_the_paper():
    """§2.1: book, interesting, found, that, Agatha, with a beam of two that keeps VB beside NN for book."""
    NNP, VBD, VBN, DT, IN, NN, VB, JJ = range(8)
    words = ["Agatha", "found", "that", "book", "interesting"]
    sentence = Sentence(words, [[str(i)] for i in range(5)], [NNP, VBD, DT, NN, JJ])
    weights = {("3", NN): 90, ("3", VB): 80, ("1", VBD): 60, ("1", VBN): 50, ("4", JJ): 65, ("2", IN): 20}
    weights |= {("t[1]=[5]", DT): 45, ("t[1]=[1]", NNP): 30, ("t[-1]=[5]", JJ): 5, ("t[-1]=[6]", JJ): 5}
    model = model_of(["shen2007_b"], 8, beam=2)
    set_weights(model, weights)
    found = model.decode(batch_of([sentence]))
    assert found.labels[0].tolist() == sentence.gold
    assert found.order[0].tolist() == [4, 2, 3, 0, 1]
    assert found.scores[0].item() == 90 + 60 + 65 + 5 + 45 + 30
    assert Reference(["t[1]", "t[-1]"], 8, 2, weights=weights).decode(sentence)[1] == [4, 2, 3, 0, 1]


def test_differences_between_states_do_not_drown_in_long_texts():
    """V grows with the text: here to where float32 counts in steps of 0.5."""
    few = max(sentences(2, 4, 4), key=lambda s: len(s.words))
    text = Sentence(few.words * 80, few.static * 80, few.gold * 80)
    model = model_of(["t[-1]"], 4, order="left-to-right", beam=2)
    torch.manual_seed(1)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    with torch.no_grad():
        model.static.node += 1e4
    rounded, exact = (m.decode(batch_of([text])) for m in (model, copy.deepcopy(model).double()))
    assert rounded.scores > 2**22
    assert torch.equal(rounded.labels, exact.labels)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_the_same_on_a_gpu():
    """Whole numbers: learning and inference do not depend on the order of sums."""
    made = sentences(12, 20, 4, longest=20)
    batches = batch_of(made), moved(batch_of(made), "cuda")
    models = model_of(["shen2007_c"], 4), model_of(["shen2007_c"], 4).cuda()
    progress = [model.learn(batch) for model, batch in zip(models, batches, strict=True)]
    assert progress[0] == progress[1]
    for a, b in zip(models[0].state_dict().values(), models[1].state_dict().values(), strict=True):
        assert torch.equal(a, b.cpu())
    here, there = (model.decode(batch) for model, batch in zip(models, batches, strict=True))
    assert all(torch.equal(a, b.cpu()) for a, b in zip(here, there, strict=True))


def moved(value, device):
    """Tuples of tensors on another device."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    return type(value)(*(moved(part, device) for part in value)) if isinstance(value, tuple) else value
