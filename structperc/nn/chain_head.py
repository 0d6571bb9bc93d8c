"""A chain of labels on top of any network."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from structperc.chain import KBest
from structperc.chain.lattices import full_precision
from structperc.criteria import Criterion
from structperc.data.labels import LabelSet
from structperc.nn.head import Head
from structperc.nn.inputs import label_set
from structperc.nonlocal_features import NonlocalFeature
from structperc.structures import Batch, Lattice


class ChainHead(Head):
    """Linear-chain CRF head for any network.

    The network computes a score for each label at each position. The head computes the loss for training, and the best
    label sequences for prediction. The score of a label sequence is

    score(y) = sum over t of (logits[t, y_t] + transitions[y_{t-1}, y_t]),

    with start_transitions at the first and end_transitions at the last token of each sentence. Pairs of labels that are
    illegal in the tag scheme have score -inf.

    Tokens are the positions in `mask` whose gold label is not -100. A chain connects successive tokens, across padding
    on either side, special tokens and further subwords. At prediction there is no gold, and `mask` must mark the same
    positions; see `first_subwords`. Results are float32, also for logits of half precision and under autocast. A row
    without tokens has loss 0 and no labels. A row without a legal label sequence has loss 0, without a gradient; its
    labels and probabilities are 0, and its score is -inf.

    If a logit at a token is +inf or NaN, the loss of the row is NaN, and so are its probabilities in `marginals`.
    Searches then raise InvalidScoreError on a CPU; on other devices, to avoid a synchronisation, labels are 0 and
    scores NaN.

    The names of the labels are part of the state: `load_state_dict` raises InputError for other names or another order.

    Args:
        labels: a LabelSet, names of labels in the order of the logits, or a mapping of numbers to names (id2label).
        criterion: the loss; by default CRFLoss, the negative log-likelihood of a conditional random field.
        nonlocal_features: features of whole label sequences. Calls then need `words`, and for documents `sentences`.
        decoder: search for candidates in prediction, which non-local features score again; by default for 100.
        transitions: if True, train the scores of label pairs and of first and last labels, which start at zero.
        scheme: tag scheme, if `labels` are names.

    Raises:
        InputError: an invalid combination of parts, or invalid labels.

    Example:
        >>> import torch
        >>> from structperc.nn import ChainHead
        >>> head = ChainHead(["O", "B-PER", "I-PER"])
        >>> logits = torch.tensor([[[0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]])  # of any network
        >>> head.decode(logits)
        tensor([[1, 2]])
        >>> loss = head(logits, gold=torch.tensor([[1, 2]]))
        >>> round(loss.item(), 4)
        0.1071
    """

    def __init__(
        self,
        labels: LabelSet | Iterable[str] | Mapping[int, str] | Mapping[str, str],
        criterion: Criterion | None = None,
        nonlocal_features: Sequence[NonlocalFeature] = (),
        search: KBest | None = None,
        decoder: KBest | None = None,
        transitions: bool = True,
        scheme: str = "IOB2",
    ) -> None:
        names = label_set(labels, scheme)
        super().__init__(names, len(names), criterion, nonlocal_features, search, decoder)
        L, self.trains_transitions = len(names), transitions
        self.start_transitions = nn.Parameter(torch.zeros(L), requires_grad=transitions)
        self.transitions = nn.Parameter(torch.zeros(L, L), requires_grad=transitions)
        self.end_transitions = nn.Parameter(torch.zeros(L), requires_grad=transitions)

    def _scores(self, inputs: Tensor, batch: Batch) -> Lattice:
        start, end = full_precision(self.start_transitions), full_precision(self.end_transitions)
        unary = full_precision(inputs) + torch.where(batch.first[:, :, None], start, 0)
        unary = unary + torch.where(batch.last[:, :, None], end, 0)
        return Lattice(unary, self.transitions[None, None], batch.lengths)
