"""Inference against the reference: the same order, labels and scores."""

import pytest
import torch

from structperc.guided.training_arrays import UNKNOWN
from tests.guided.reference import Reference, Sentence
from tests.guided.tagged import Weights, batch_of, draw_weights, model_of, reference_of, sentences, set_weights

TEMPLATES = {"A": ["shen2007_a"], "B": ["shen2007_b"], "E": ["shen2007_e"], "words": ["t[-1] t[2] w[1]", "t[1] w[-2]"]}
ORDERS = ["easiest", "left-to-right"]


def weighted(templates, L, beam, order, seed, most=2):
    """A model with random weights, and the reference with the same."""
    model = model_of(templates, L, 2**8, beam=beam, order=order)
    draw_weights(model, seed, most)
    reference = reference_of(model)
    reference.weights = Weights(model)
    return model, reference


@pytest.mark.parametrize(
    ("beam", "order"), [(1, "easiest"), (2, "left-to-right"), (7, "easiest"), (40, "left-to-right")]
)
@pytest.mark.parametrize("templates", TEMPLATES.values(), ids=TEMPLATES)
def test_same_decisions_as_the_reference(templates, beam, order):
    for seed, L in enumerate((3, 1)):
        made = sentences(seed, 5, L)
        model, reference = weighted(templates, L, beam, order, seed, most=1 + seed)
        found = model.decode(batch_of(made, spare=seed))
        for row, sentence in enumerate(made):
            top, steps, first = reference.decode(sentence)
            T = len(steps)
            assert found.order[row, :T].tolist() == steps
            assert found.labels[row, :T].tolist() == list(top.labels)
            assert found.first[row, :T].tolist() == first
            assert found.windows[row, :T].tolist() == [window(before, after) for _, before, after in top.taken]
            assert found.U[row, :T].tolist() == [U for U, _, _ in top.taken]
            assert found.scores[row].item() == top.V
            for values, fill in zip(found[:-1], (0, -1, 0, UNKNOWN, 0), strict=True):
                assert values.shape[1] == max(len(s.words) for s in made) + seed
                assert values[row, T:].eq(fill).all()


def window(before, after):
    """Labels of up to two neighbours on either side as the library wants them."""
    return [*[UNKNOWN] * (2 - len(before)), *before, *after, *[UNKNOWN] * (2 - len(after))]


@pytest.mark.parametrize(("beam", "labels", "U"), [(1, [0, 0], [9, 1]), (2, [1, 0], [8, 4])])
def test_a_beam_may_change_its_mind_about_a_label(beam, labels, U):
    """The first word is 0 by 9 and 1 by 8, the second 0 by 1, by 3 more after 1."""
    model = model_of(["t[-1]"], 2, beam=beam)
    set_weights(model, {("0", 0): 9, ("0", 1): 8, ("1", 0): 1, ("t[-1]=[1]", 0): 3})
    found = model.decode(batch_of([Sentence(["the", "dog"], [["0"], ["1"]], [0, 0])]))
    assert found.order[0].tolist() == [0, 1]
    assert found.first[0].tolist() == [0, 0]
    assert found.labels[0].tolist() == labels
    assert found.windows[0].tolist() == [[UNKNOWN] * 4, [UNKNOWN, labels[0], UNKNOWN, UNKNOWN]]
    assert found.U[0].tolist() == U
    assert found.scores.item() == sum(U)


@pytest.mark.parametrize("order", ORDERS)
def test_nothing_to_label(order):
    model = model_of(["shen2007_c"], 3, order=order)
    empty = Sentence([], [], [])
    for made in ([], [empty], [empty, empty]):
        found = model.decode(batch_of(made, spare=2 * bool(made)))
        assert found.labels.shape == found.order.shape == (len(made), 2 * bool(made))
        assert found.scores.tolist() == [0] * len(made)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("weight", [torch.nan, torch.inf, -torch.inf])
def test_weights_not_finite(order, weight):
    """Every token is decided once, whatever it is worth, and learning comes to its end."""
    made = sentences(7, 8, 3)
    model = model_of(["shen2007_c"], 3, order=order)
    with torch.no_grad():
        model.static.node[::2] = weight
        model.context.table[1::3] = weight
    found = model.decode(batch_of(made))
    for row, sentence in enumerate(made):
        assert sorted(found.order[row, : len(sentence.words)].tolist()) == list(range(len(sentence.words)))
    assert model.learn(batch_of(made)).decisions > 0


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
    assert found.U[0].tolist() == [30, 60, 45, 90, 70]
    assert found.windows[0, :3].tolist() == [[-1, -1, VBD, DT], [-1] * 4, [-1, VBD, NN, JJ]]
    assert found.windows[0, 3:].tolist() == [[-1] * 4, [-1, NN, -1, -1]]
    assert found.scores[0].item() == 90 + 60 + 65 + 5 + 45 + 30
    assert Reference(["t[1]", "t[-1]"], 8, 2, weights=weights).decode(sentence)[1] == [4, 2, 3, 0, 1]


def test_differences_between_states_of_long_texts():
    """V grows with the text: here to where float32 counts in steps of 0.5."""
    few = max(sentences(2, 4, 4), key=lambda s: len(s.words))
    text = Sentence(few.words * 80, few.static * 80, few.gold * 80)
    model = model_of(["t[-1]"], 4, order="left-to-right", beam=2)
    torch.manual_seed(1)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    with torch.no_grad():
        model.static.node += 1e4
    reference = reference_of(model)
    reference.weights = Weights(model)
    found = model.decode(batch_of([text]))
    assert found.scores > 2**22
    assert found.labels[0].tolist() == list(reference.decode(text)[0].labels)


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
