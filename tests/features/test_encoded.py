from itertools import pairwise

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from structperc.features.encoded_features import EncodedFeatures
from structperc.ragged import Ragged

sequences = st.lists(st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=4), max_size=6)


def flatten(nested):
    tokens = [token for sequence in nested for token in sequence]
    counts = torch.tensor([len(token) for token in tokens], dtype=torch.int64)
    ids = torch.tensor([i for token in tokens for i in token], dtype=torch.int32)
    return Ragged.from_counts(ids, counts)


def encoded(nested, edges=None):
    starts = np.cumsum([0, *map(len, nested)])
    return EncodedFeatures(flatten(nested), edges, starts)


@given(sequences, st.data())
def test_a_cut_equals_concatenated_sequences(nested, data):
    rows = data.draw(st.lists(st.integers(0, len(nested) - 1), max_size=5)) if nested else []
    nodes, edges = encoded(nested).cut(rows)
    tokens = [token for row in rows for token in nested[row]]
    offsets = nodes.offsets.tolist()
    assert [nodes.ids[a:b].tolist() for a, b in pairwise(offsets)] == tokens
    assert offsets[0] == 0
    assert (nodes.ids.dtype, nodes.offsets.dtype, edges) == (torch.int32, torch.int32, None)


def test_edges_of_their_own_and_shared_edges():
    nested = [[[1, 2], []], [[3]]]
    own = encoded(nested, flatten([[[7], [8, 9]], [[]]]))
    assert own.cut([1, 0])[1].ids.tolist() == [7, 8, 9]
    assert own.cut([1, 0])[1].offsets.tolist() == [0, 0, 1, 3]
    nodes = flatten(nested)
    first, second = EncodedFeatures(nodes, nodes, own.starts).cut([0])
    assert first is second


def test_a_cut_owns_its_memory():
    whole = encoded([[[1, 2]]])
    whole.cut([0])[0].ids.fill_(0)
    assert whole.nodes.ids.tolist() == [1, 2]
