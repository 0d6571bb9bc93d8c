"""Whole taggers as compiled and as exported programs: what they answer when they are not."""

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.utils._pytree import tree_map

from structperc.chain import KBest, exportable_viterbi, kbest, log_partition, marginals, path_score
from structperc.chain.viterbi import exportable_marginals
from structperc.criteria import CRFLoss
from structperc.encoders import CharCNN, Encoder, Window, WordEmbedding
from structperc.scorers import Neural
from structperc.structures import Batch
from structperc.taggers import Tagger
from tests.tiny import EDGE, Sentences, make_tagger, sentences

DATA = Sentences(sentences(12, seed=3))
ROWS = ([0, 3, 1], [4, 5, 6, 7])


def neural(encoder: Encoder) -> Tagger:
    torch.manual_seed(0)
    tagger = Tagger(None, Neural(encoder), CRFLoss(), KBest(1), torch.optim.Adam)
    tagger.build_vocabulary(DATA)
    for p in tagger.parameters():
        nn.init.normal_(p)
    return tagger


TAGGERS = {
    "features": lambda: make_tagger(DATA, CRFLoss(), edge=EDGE),
    "characters": lambda: neural(Window([WordEmbedding(6, cutoff=1), CharCNN(5, characters=4)])),
}


def tagger_and_batches(kind: str) -> tuple[Tagger, list[Batch]]:
    tagger = TAGGERS[kind]().eval()
    encoded = tagger.encode(DATA.corpus("train"))
    return tagger, [encoded[rows] for rows in ROWS]


def test_decoding_is_compiled_as_one_graph() -> None:
    tagger, batches = tagger_and_batches("features")
    compiled = torch.compile(tagger.decode, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch in batches:
        assert torch.equal(compiled(batch), tagger.decode(batch))


@pytest.mark.slow
def test_scores_of_a_network_are_compiled_as_one_graph() -> None:
    tagger, batches = tagger_and_batches("characters")
    compiled = torch.compile(tagger.forward, fullgraph=True, dynamic=True, backend="eager")
    for batch in batches:
        torch.testing.assert_close(compiled(batch), tagger(batch))


class Answers(nn.Module):
    """All that a tagger says about a batch: labels, the next best ones, scores and probabilities."""

    def __init__(self, tagger: Tagger) -> None:
        super().__init__()
        self.tagger = tagger

    def forward(self, batch: Batch) -> tuple[tuple[Tensor, ...], ...]:
        lattice, labels = self.tagger(batch), self.tagger.decode(batch)
        sure = path_score(lattice, labels), log_partition(lattice), marginals(lattice)
        return (labels, *sure), kbest(lattice, 3), exportable_viterbi(lattice), exportable_marginals(lattice)


def test_answers_are_exported_for_any_shape() -> None:
    tagger, batches = tagger_and_batches("features")
    answers = Answers(tagger)
    with torch.no_grad():
        any_shape = tree_map(lambda x: [Dim.AUTO] * x.dim() if isinstance(x, Tensor) else None, batches[0])
        program = torch.export.export(answers, (batches[0],), dynamic_shapes=(any_shape,)).module()
        for batch in batches:
            torch.testing.assert_close(program(batch), answers(batch))
