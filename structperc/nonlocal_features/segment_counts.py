"""Compiled counts of segments in few candidates: segments, equal strings, chains of conjunctions."""

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.kernels.slices import rank
from structperc.nonlocal_features.strings import BASE

INITIAL_SIZE = 16  # initially allocated segments of a label sequence


@kernel
def list_segments(labels, valid, lengths, first, types, opening):
    """List the segments of labels (B, K, T) as defined by `segment_boundaries` -> the fields of `SegmentLists`.

    valid (B, K), False for label sequences without segments; lengths (B,); first (B, T), first tokens of sentences;
    types (L,) of labels, -1 for none, and opening (L, L) of a `LabelSet`. The padding is not read.
    """
    B, K, T = labels.shape
    bounds, n = np.zeros(B * K + 1, np.int64), 0
    found = np.empty((3, INITIAL_SIZE * B * K + T), np.int64)
    for b in range(B):
        for k in range(K):
            if valid[b, k]:
                if found.shape[1] < n + T:
                    larger = np.empty((3, 2 * found.shape[1]), np.int64)
                    larger[:, :n] = found[:, :n]
                    found = larger
                n = _write_segments(labels[b, k], lengths[b], first[b], types, opening, b * T, found, n)
            bounds[b * K + k + 1] = n
    return bounds, found[0, :n], found[1, :n], found[2, :n]


@subkernel_no_alloc
def _write_segments(labels, length, first, types, opening, at, found, n):
    """Append the segments of labels (T,), whose first token has the position `at`, to found[:, :n] -> the new n."""
    within, before = False, 0
    for t in range(length):
        label = labels[t]
        inside = types[label] >= 0
        opens = inside and (t == 0 or first[t] or opening[before, label])
        if within and (opens or not inside):
            found[1, n] = at + t
            n, within = n + 1, False
        if opens:
            found[0, n], found[2, n], within = at + t, types[label], True
        before = label
    if within:
        found[1, n] = at + length
        n += 1
    return n


@kernel
def count_strings(bounds, starts, stops, types, words, C):
    """Return the fields of `StringCounts` of listed segments; words (B * T,) int64 are the numbers of the words.

    Takes time O(E log E) for the E segments of a label sequence, plus O(words of a segment * different lengths * log E)
    for parts of segments with the length of another segment.
    """
    N = len(bounds) - 1
    phrase, subphrase = np.zeros((N, C * (C + 1) // 2), np.float32), np.zeros((N, C * C), np.float32)
    majority, superphrase = np.zeros((N, C * C), np.float32), np.zeros((N, C * C), np.float32)
    most = longest = 0
    for i in range(N):
        most = max(most, bounds[i + 1] - bounds[i])
    for e in range(len(starts)):
        longest = max(longest, stops[e] - starts[e])
    numbers, strings = np.empty(most, np.int64), np.empty(most, np.int64)
    members, votes = np.empty((most, C), np.int64), np.empty((most, C), np.int64)
    seen, sizes = np.empty(most, np.int64), np.zeros(longest + 1, np.bool_)
    for i in range(N):
        first, E = bounds[i], bounds[i + 1] - bounds[i]
        if E < 2:
            continue  # nothing to compare
        for e in range(E):
            numbers[e] = 0  # a hash of the words; collisions are as rare as in `Hashes`
            for t in range(starts[first + e], stops[first + e]):
                numbers[e] = numbers[e] * BASE + words[t]
        G = _group_strings(numbers[:E], np.argsort(numbers[:E]), types[first : first + E], strings, members)
        for g in range(G):
            _count_equal(members[g], phrase[i], majority[i])
        _count_parts(starts, stops, types, first, E, words, strings[:G], members, votes, seen, sizes, subphrase[i])
        for g in range(G):
            for own in range(C):
                most_votes = _most(votes[g], own)
                if members[g, own] and most_votes >= 0:
                    superphrase[i, own * C + most_votes] += members[g, own]
    return phrase, subphrase, majority, superphrase


@subkernel_no_alloc
def _group_strings(numbers, order, types, strings, members):
    """Write the different numbers, ascending, and the segments of each type with each of them -> their number G."""
    G = 0
    for e in order:
        if G == 0 or numbers[e] != strings[G - 1]:
            strings[G] = numbers[e]
            members[G] = 0
            G += 1
        members[G - 1, types[e]] += 1
    return G


@subkernel_no_alloc
def _count_equal(members, phrase, majority):
    """Count the segments of one string, members (C,) of each type, for `PhraseConsistency` and `MajorityPhrase`."""
    C, column = len(members), 0
    for a in range(C):
        for b in range(a, C):
            phrase[column] += members[a] * (members[a] - 1) // 2 if a == b else members[a] * members[b]
            column += 1
    for own in range(C):
        if members[own]:
            members[own] -= 1  # the others
            most = _most(members, own)
            members[own] += 1
            if most >= 0:
                majority[own * C + most] += members[own]


@subkernel_no_alloc
def _most(votes, own):
    """Return the type with most votes (C,); of several, `own` or else the first; -1 without votes."""
    most, votes_for = own, votes[own]
    for c in range(len(votes)):
        if votes[c] > votes_for:
            most, votes_for = c, votes[c]
    return most if votes_for else -1


@subkernel_no_alloc
def _count_parts(starts, stops, types, first, E, words, strings, members, votes, seen, sizes, subphrase):
    """Count pairs of segments for `SubphraseConsistency`.

    Also write votes (G, C), the segments of each type that contain each of the strings (G,) as a proper part. seen and
    sizes are buffers; sizes is False before and after the call.
    """
    C = members.shape[1]
    votes[: len(strings)], seen[: len(strings)] = 0, -1
    for e in range(first, first + E):
        sizes[stops[e] - starts[e]] = True
    for e in range(first, first + E):
        size = stops[e] - starts[e]
        for start in range(starts[e], stops[e]):
            number = 0
            for stop in range(start + 1, min(start + size, stops[e] + 1)):  # shorter than the whole
                number = number * BASE + words[stop - 1]
                if not sizes[stop - start]:
                    continue
                g = rank(strings, number)
                if g < len(strings) and strings[g] == number and seen[g] != e:  # once for each segment
                    seen[g] = e
                    votes[g, types[e]] += 1
                    for a in range(C):
                        subphrase[a * C + types[e]] += members[g, a]
    for e in range(first, first + E):
        sizes[stops[e] - starts[e]] = False


def count_chains(bounds, starts, stops, types, connects, first, C):
    """Return the counts (N, C (C + 1) / 2) float32 of `ConjunctionConsistency` in the segments of N label sequences.

    connects and first (B * T,) bool: connectors, and first tokens of sentences; C types.
    """
    barriers = np.append(0, (first | ~connects).cumsum())
    connected = np.zeros(len(starts), np.bool_)
    connected[1:] = (barriers[stops[:-1]] == barriers[starts[1:]]) & (starts[1:] > stops[:-1]) & ~first[starts[1:]]
    connected[bounds[:-1][bounds[:-1] < len(starts)]] = False
    chains = (~connected).cumsum() - 1
    members = np.zeros((len(starts) - connected.sum(), C), np.int64)
    np.add.at(members, (chains, types), 1)
    (a, b), rows = np.triu_indices(C), np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))[~connected]
    counts = np.zeros((len(bounds) - 1, len(a)), np.float32)
    np.add.at(counts, rows, np.where(a == b, members[:, a] * (members[:, a] - 1) // 2, members[:, a] * members[:, b]))
    return counts
