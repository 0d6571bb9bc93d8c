"""With a table of transitions for all tokens nothing is as large as one for each token would be."""

import random
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from structperc.chain import entropy
from structperc.criteria import CRFLoss, MarginLoss, MCEFLoss
from structperc.nn.candidate_scorer import ComparedSequences
from tests.tiny import Sentences, make_tagger

TYPES, TOKENS = 20, 150


class Largest(TorchDispatchMode):
    """Notes the most elements that any tensor holds in memory, outside of compiled operators."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        found = function(*arguments, **(options or {}))
        for one in tree_leaves(found):
            if isinstance(one, torch.Tensor):
                self.elements = max(self.elements, one.untyped_storage().nbytes() // one.element_size())
        return found


def text(n: int) -> list[list[tuple[str, str]]]:
    """Long sentences with names of every type, one or two words each."""
    draw, made = random.Random(0), []
    for i in range(n):
        sentence: list[tuple[str, str]] = []
        while len(sentence) < TOKENS:
            kind = (len(sentence) + i) % TYPES
            name = [(f"w{draw.randrange(30)}", f"{prefix}-T{kind}") for prefix in "BI"[: draw.randint(1, 2)]]
            sentence += [*name, ("the", "O")]
        made.append(sentence[:TOKENS])
    return made


CRITERIA = {"margin": MarginLoss(C=1.0), "likelihood": CRFLoss(), "MCE-F": MCEFLoss()}


@pytest.fixture(params=["sentence", "document"])
def data(request):
    """Two sequences: sentences, or documents of two sentences."""
    made = Sentences(text(4 if request.param == "document" else 2), unit=request.param)
    if request.param == "document":
        made.rows = made.rows.remove_columns("document").add_column("document", [0, 0, 1, 1])
    return made


@pytest.mark.parametrize("name", CRITERIA)
def test_a_step_of_training(name, data):
    tagger = make_tagger(data, CRITERIA[name], k=3)
    batch = tagger.encode(data.corpus("train"))[[0, 1]]
    L = len(tagger.labels)
    with Largest() as largest:
        lattice = tagger(batch)
        with torch.no_grad():
            candidates = tagger.search(lattice)
        tagger.criterion(
            tagger.candidate_scorer.score(batch, ComparedSequences(lattice, batch.gold, None), candidates)
        ).sum().backward()
    assert tagger.scorer.transition.grad.any()
    assert 2 * TOKENS * L <= largest.elements < TOKENS * L * L


def test_labels_and_probabilities(data, monkeypatch):
    monkeypatch.setattr(sys.modules["structperc.chain.marginals"], "MAX_PAIRS", 0)
    tagger = make_tagger(data, CRFLoss(), k=3).eval()
    batch = tagger.encode(data.corpus("train"))[[0, 1]]
    L = len(tagger.labels)
    with Largest() as largest, torch.no_grad():
        labels = tagger.decode(batch)
        tagger.confidences(batch, labels)
        entropy(tagger(batch))
    assert 2 * TOKENS * L <= largest.elements < TOKENS * L * L
