"""Heads for any network: scores of labels -> losses and label sequences, in plain PyTorch.

head.py              base class of heads: masks, criterion, search, probabilities
chain_head.py        a chain of labels on top of any network: transitions, tag scheme
segment_head.py      scores of whole segments on top of any encoder: first and last token, length
token_tagger.py      a transformer with this head, its tokenizer, prediction of spans, saved folders
token_decoding.py    legal spans from a token classifier that is trained already
torchcrf.py          the same with the interface of pytorch-crf
candidate_scorer.py  candidates of a lattice with local and non-local scores, for heads and taggers
inputs.py            checks of scores, masks, gold labels and label names; words of the tokens
subwords.py          first subwords of words, rows for a model, mini-batches
"""

from structperc.nn.chain_head import ChainHead
from structperc.nn.segment_head import SegmentHead
from structperc.nn.subwords import TokenCollator, tokenize_words
from structperc.nn.token_decoding import decode_tokens, estimate_transitions, fit_transitions
from structperc.nn.token_tagger import TokenTagger
from structperc.nn.torchcrf import CRF

__all__ = [
    "ChainHead",
    "CRF",
    "SegmentHead",
    "tokenize_words",
    "TokenCollator",
    "TokenTagger",
    "decode_tokens",
    "estimate_transitions",
    "fit_transitions",
]
