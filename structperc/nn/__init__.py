"""Heads for your own networks: scores of labels -> losses and label sequences, in plain PyTorch.

chain_head.py   a chain of labels on top of any network: transitions, tag scheme, criterion, search
crf.py          the same under the names of pytorch-crf
places.py       which positions of a row are tokens of its chain, and back
text.py         the words of these tokens, which non-local features compare
checks.py       what is wrong with scores, masks and gold, in one line
label_names.py  names of labels: read, saved, compared
pieces.py       which pieces of words are the first ones, rows for a model, mini-batches
"""

from structperc.nn.chain_head import ChainHead, Confidence
from structperc.nn.crf import CRF
from structperc.nn.subwords import TokenCollator, first_subwords, tokenize_words

__all__ = ["ChainHead", "Confidence", "CRF", "first_subwords", "tokenize_words", "TokenCollator"]
