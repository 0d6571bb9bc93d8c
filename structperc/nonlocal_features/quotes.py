"""Templates of words between double quotation marks (Collins 2002, section 3.2)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.data.lexicon import LowerCaseLexicon
from structperc.data.tag_schemes import spans
from structperc.data.words import DIGIT, LOWER, QUOTE, UPPER, word_kind
from structperc.errors import InputError
from structperc.nonlocal_features.candidate_segments import CandidateSegments
from structperc.nonlocal_features.global_feature import (
    LexiconFeature,
    Occurrences,
    name_hashes,
    shift,
    token_string,
    word_shapes_with_flag,
)
from structperc.nonlocal_features.strings import BASE, combined
from structperc.ragged import spread

INITIAL = LOWER | UPPER | DIGIT  # kinds of words that begin with a letter or a digit


class Quotes(NamedTuple):
    """Pairs of matching quotation marks with a word that begins with a letter or a digit between them.

    In each sentence marks open and close in turn, regardless of their form; an unmatched mark is ignored.
    """

    opens: Tensor  # (Q,) int64, b * T + t of the first mark: s
    closes: Tensor  # (Q,) int64, b * T + t of the second mark: e
    lasts: Tensor  # (Q,) int64, b * T + t of the last such word between them: e'
    upper: Tensor  # (Q,) int64, number of words between them that begin with an upper-case letter: u
    lower: Tensor  # (Q,) int64, number of words that begin with a lower-case letter: l


class QuoteFeature(LexiconFeature):
    """Base class of templates with two strings for each pair of quotation marks."""

    def listed(self, numbers: list[Tensor], types: Tensor, quotes: Quotes, segments: CandidateSegments) -> Occurrences:
        """Return the occurrences of quotes (Q,) from numbers (Q, K) of part 0, 1 and types (Q, K), -1 for none."""
        K, T = segments.valid.shape[1], segments.possible.shape[1]
        keys = torch.stack([self.key(part, i, types, segments) for i, part in enumerate(numbers)], 2)
        q, k, part = segments.valid[quotes.opens // T].unsqueeze(2).expand_as(keys).nonzero().unbind(1)
        starts = quotes.opens[q] % T
        ends = starts + quotes.closes[q] - quotes.opens[q] + 1
        return Occurrences(quotes.opens[q] // T * K + k, keys[q, k, part], starts, ends, types[q, k], part)


class QuotedTags(QuoteFeature):
    """The g and the labels t of quoted words: Q=g_s t_s ... g_e t_e, and Q2 with one word more on either side.

    Without labels the strings would be the same in all label sequences of a sentence. Labels contain their types, so
    the strings have no other type.

    Args:
        limit: quotes with e - s >= limit have no string. (The value is illegible in our copy of the paper.)

    Raises:
        InputError: a limit that leaves no word between the marks.
    """

    template = "Q"

    def __init__(self, limit: int = 10, lexicon: LowerCaseLexicon | None = None) -> None:
        super().__init__(False, lexicon)
        if limit <= 2:
            raise InputError(f"QuotedTags: limit {limit} leaves no word between two quotation marks; set it > 2")
        self.limit = limit

    def occurrences(self, segments: CandidateSegments) -> Occurrences:
        """Return two strings for each pair of quotation marks that are close enough."""
        quotes = find_quotes(segments)
        near = (quotes.closes - quotes.opens < self.limit).nonzero().squeeze(1)
        quotes = Quotes(*(values[near] for values in quotes))
        strings = [self._numbers(quotes, more, segments) for more in (0, 1)]
        return self.listed(strings, torch.full_like(strings[0], -1), quotes, segments)

    def format_string(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Return a string such as "Q=``0 O Aa1 B-MISC ''0 O"."""
        tokens = range(start - part, end + part)
        pairs = (f"{token_string(words, t, self.lexicon)} {token_string(labels, t)}" for t in tokens)
        return f"{('Q', 'Q2')[part]}={' '.join(pairs)}"

    def _numbers(self, quotes: Quotes, more: int, segments: CandidateSegments) -> Tensor:
        """Return the hashes (Q, K) of the tokens s - more, ..., e + more."""
        lengths = quotes.closes - quotes.opens + 1 + 2 * more
        quote, step = spread(lengths)
        tokens = self._tokens(quotes.opens[quote], step - more, segments)
        powers = torch.full_like(step, BASE).cumprod(0)[step].unsqueeze(1)
        sums = tokens.new_zeros(len(lengths), tokens.shape[1]).index_add_(0, quote, tokens * powers)
        return combined(sums, lengths.unsqueeze(1))

    def _tokens(self, marks: Tensor, by: Tensor, segments: CandidateSegments) -> Tensor:
        """Return the hashes (R, K) of g_i t_i at positions marks + by (R,), 0 outside the sentence of the mark."""
        T = segments.possible.shape[1]
        shapes = shift(word_shapes_with_flag(segments.batch.words, self.lexicon), marks, by, segments)
        inside = shapes != 0
        places = (marks + by).where(inside, marks)
        labels = segments.candidate_labels.labels[places // T, :, places % T]
        tags = name_hashes(segments.label_set.names).to(labels.device)[labels]
        return combined(shapes.unsqueeze(1), tags).where(inside.unsqueeze(1), 0)


class QuotedEntity(QuoteFeature):
    """Flag of quoted words that are exactly one entity: QF=b' u l g_s+1 g_e', QF2=b' b g_s+1 g_e'.

    b' is 1 if the words s + 1, ..., e' are exactly one entity, whose type is added; u and l count words that begin
    with an upper-case and a lower-case letter; b is 1 if u > l.

    Example:
        >>> feature, words, labels = QuotedEntity(), ['"', "Jaws", '"', "ran"], ["O", "B-MISC", "O", "O"]
        >>> feature.string(words, labels, 0, 3, "MISC", 0)
        'QF=1 1 0 Aa0 Aa0/MISC'
    """

    template = "QF"

    def occurrences(self, segments: CandidateSegments) -> Occurrences:
        """Return two strings for each pair of quotation marks."""
        quotes = find_quotes(segments)
        types = entity_types(quotes, segments)
        shapes = word_shapes_with_flag(segments.batch.words, self.lexicon).flatten()
        first, last = shapes[quotes.opens + 1], shapes[quotes.lasts]
        more = (quotes.upper > quotes.lower).long()
        strings = (quotes.upper, quotes.lower, first, last), (more, first, last)
        whole = (types >= 0).long()
        numbers = [combined(whole, *(values.unsqueeze(1) for values in string)) for string in strings]
        return self.listed(numbers, types, quotes, segments)

    def format_string(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Return a string such as "QF=1 6 0 Aa1 Aa0" or "QF2=1 1 Aa1 Aa0"."""
        kinds = [word_kind(word) for word in words[start + 1 : end - 1]]
        last = start + max(i for i, kind in enumerate(kinds, 1) if kind & INITIAL)
        whole = any((span.start, span.end) == (start + 1, last + 1) for span in spans(labels))
        upper, lower = (sum(kind & case > 0 for kind in kinds) for case in (UPPER, LOWER))
        sizes = f"QF={whole:d} {upper} {lower}" if part == 0 else f"QF2={whole:d} {upper > lower:d}"
        return f"{sizes} {token_string(words, start + 1, self.lexicon)} {token_string(words, last, self.lexicon)}"


def find_quotes(segments: CandidateSegments) -> Quotes:
    """Find the pairs of quotation marks of a batch, each within one sentence."""
    kinds, sentences = segments.batch.words.kinds.flatten(), segments.sentences
    opens, closes = _pairs((kinds & QUOTE).nonzero().squeeze(1), sentences)
    places = torch.arange(len(kinds), device=kinds.device)
    lasts = places.where((kinds & INITIAL) > 0, -1).cummax(0).values[closes]
    upper, lower = (((kinds & case) > 0).cumsum(0) for case in (UPPER, LOWER))
    found = Quotes(opens, closes, lasts, upper[closes] - upper[opens], lower[closes] - lower[opens])
    kept = (lasts > opens).nonzero().squeeze(1)
    return Quotes(*(values[kept] for values in found))


def entity_types(quotes: Quotes, segments: CandidateSegments) -> Tensor:
    """Return the type (Q, K) int64 of the entity from the word after the first mark to the last word, -1 for none."""
    K, spans, holders = segments.valid.shape[1], segments.spans, segments.holders
    starts, ends = pad(quotes.opens + 1, (0, 1), value=-1), pad(quotes.lasts + 1, (0, 1), value=-1)
    quote = torch.searchsorted(starts[:-1], spans.starts)
    same = ((starts[quote] == spans.starts) & (ends[quote] == spans.ends)).nonzero().squeeze(1)
    candidates = holders.select(same)
    span = same[candidates.row_ids]
    types = spans.types.new_full((len(quotes.opens), K), -1)
    types[quote[span], candidates.ids % K] = spans.types[span]
    return types


def _pairs(marks: Tensor, sentences: Tensor) -> tuple[Tensor, Tensor]:
    """Return the positions of opening and closing marks from the positions of all marks (n,), ascending."""
    number = torch.arange(len(marks), device=marks.device)
    new = sentences[marks].diff(prepend=sentences.new_full((1,), -1)) != 0
    rank = number - number.where(new, 0).cummax(0).values
    opening = ((rank[:-1] % 2 == 0) & ~new[1:]).nonzero().squeeze(1)
    return marks[opening], marks[opening + 1]
