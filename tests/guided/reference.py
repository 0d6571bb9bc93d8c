"""Algorithms 1 and 2 of Shen, Satta & Joshi 2007, read off the paper: dictionaries of states, P and Q as dictionaries.

A feature is a string, the weights are a Counter over (feature, label). Nothing of the library is used.
"""

import re
from collections import Counter
from dataclasses import dataclass

BEAM_REACH = 2  # labels of an interface: the trigram model


@dataclass
class Sentence:
    words: list[str]
    static: list[list[str]]  # features of each token
    gold: list[int]
    allowed: list[list[bool]] | None = None  # (T, L), None: gold only
    weight: float = 1

    def right(self, token):
        if self.allowed is None:
            return {self.gold[token]}
        return {y for y, allowed in enumerate(self.allowed[token]) if allowed}


@dataclass
class Hypothesis:
    labels: tuple[int, ...]  # of all tokens of the span
    V: float
    U: float  # of the most recent action
    action: list[tuple[str, int]]  # f(h.A), as (feature, label)
    actions: list[list[tuple[str, int]]]  # all of them
    taken: tuple[tuple[float, tuple[int, ...], tuple[int, ...]], ...]  # of each token: U, labels known before, after

    @property
    def state(self):
        return self.labels[:BEAM_REACH], self.labels[-BEAM_REACH:]


@dataclass
class Span:
    first: int
    last: int
    token: int  # labelled by the most recent action
    contexts: list  # spans left and right, or None
    states: dict  # state -> its top hypothesis; best state first, at most B

    @property
    def top(self):
        return next(iter(self.states.values()))


EMPTY = Hypothesis((), 0, 0, [], [], ())


class Reference:
    def __init__(self, templates, n_labels, beam, order="easiest", weights=None):
        self.templates = {t: [(name, int(at)) for name, at in re.findall(r"([tw])\[(-?\d+)\]", t)] for t in templates}
        self.n_labels, self.beam, self.order = n_labels, beam, order
        self.weights = Counter(weights or {})
        self.history = []  # weights after each decision

    # -- features and scores ---------------------------------------------------------------------------------

    def features(self, sentence, token, before, after):
        """Features of an action at a token; labels before and after as far as they are known, nearest last/first."""
        known = {-distance: label for distance, label in enumerate(reversed(before[-2:]), 1)}
        known |= dict(enumerate(after[:2], 1))
        found = list(sentence.static[token])
        for template, parts in self.templates.items():
            values = [known.get(at) if name == "t" else self.word(sentence, token + at) for name, at in parts]
            if None not in values:
                found.append(f"{template}={values}")
        return found

    @staticmethod
    def word(sentence, token):
        return sentence.words[token] if 0 <= token < len(sentence.words) else "OUTSIDE"

    def act(self, sentence, token, label, left, right):
        f = [(name, label) for name in self.features(sentence, token, left.labels, right.labels)]
        U = sum(self.weights[x] for x in f)
        labels = (*left.labels, label, *right.labels)
        taken = (*left.taken, (U, left.labels[-2:], right.labels[:2]), *right.taken)
        return Hypothesis(labels, left.V + right.V + U, U, f, [*left.actions, *right.actions, f], taken)

    # -- P and Q ---------------------------------------------------------------------------------------------

    def contexts(self, token, P):
        left = [p for p in P if p.last == token - 1]
        right = [p for p in P if p.first == token + 1]
        return [(left or [None])[0], (right or [None])[0]]

    def hypotheses(self, sentence, token, P):
        left, right = (list(p.states.values()) if p else [EMPTY] for p in self.contexts(token, P))
        return [self.act(sentence, token, label, a, b) for a in left for b in right for label in range(self.n_labels)]

    def candidate(self, sentence, token, P):
        best = {}  # in the order of the first hypothesis that is best of its state
        for index, h in enumerate(self.hypotheses(sentence, token, P)):
            if h.state not in best or h.V > best[h.state][1].V:
                best[h.state] = index, h
        ranked = sorted(best.items(), key=lambda item: (-item[1][1].V, item[1][0]))[: self.beam]
        left, right = self.contexts(token, P)
        first, last = left.first if left else token, right.last if right else token
        return Span(first, last, token, [left, right], {state: h for state, (_, h) in ranked})

    def queue(self, sentence, P):
        done = {t for p in P for t in range(p.first, p.last + 1)}
        open_tokens = [t for t in range(len(sentence.words)) if t not in done]
        if self.order == "left-to-right":
            open_tokens = open_tokens[:1]
        return {t: self.candidate(sentence, t, P) for t in open_tokens}

    def choose(self, Q):
        return max(Q.values(), key=lambda p: (p.top.U, -p.token))

    def accept(self, span, P):
        return [*(p for p in P if p not in span.contexts), span]

    # -- Algorithm 1 -----------------------------------------------------------------------------------------

    def decode(self, sentence):
        """-> top hypothesis, order of decision, label that led when each token was decided."""
        P, order, first = [], [-1] * len(sentence.words), [-1] * len(sentence.words)
        Q = self.queue(sentence, P)
        while Q:
            span = self.choose(Q)
            order[span.token] = sum(step >= 0 for step in order)
            first[span.token] = self.label_of(span.top)
            P = self.accept(span, P)
            Q = self.queue(sentence, P)
        assert len(P) == bool(sentence.words)
        return P[0].top if P else EMPTY, order, first

    # -- Algorithm 2 -----------------------------------------------------------------------------------------

    def gold_hypothesis(self, sentence, span):
        """p.G: gold's labels on the span, by the same sequence of actions."""
        left, right = (self.gold_hypothesis(sentence, p) if p else EMPTY for p in span.contexts)
        return self.act(sentence, span.token, sentence.gold[span.token], left, right)

    def best_right_hypothesis(self, sentence, span):
        """p.G for sets: the top one if its labels are all right, else the best right action on top of the contexts."""
        tokens = zip(range(span.first, span.last + 1), span.top.labels, strict=True)
        if all(label in sentence.right(t) for t, label in tokens):
            return span.top
        left, right = (p.top if p else EMPTY for p in span.contexts)
        acts = [self.act(sentence, span.token, y, left, right) for y in sorted(sentence.right(span.token))]
        return max(acts, key=lambda h: h.U)

    @staticmethod
    def is_right(sentence, span, h):
        return all(y in sentence.right(t) for t, y in zip(range(span.first, span.last + 1), h.labels, strict=True))

    def best_extension(self, sentence, span):
        """p.G of early updates for sets: the best right action on top of any right hypotheses of the contexts."""
        sides = [
            [h for h in p.states.values() if self.is_right(sentence, p, h)] if p else [EMPTY] for p in span.contexts
        ]
        labels = sorted(sentence.right(span.token))
        acts = [self.act(sentence, span.token, y, a, b) for a in sides[0] for b in sides[1] for y in labels]
        return max(acts, key=lambda h: h.V)

    def move(self, actions, amount):
        for f in actions:
            for x in f:
                self.weights[x] += amount

    def rival(self, sentence, span, P):
        others = [
            h for h in self.hypotheses(sentence, span.token, P) if self.label_of(h) not in sentence.right(span.token)
        ]
        return max(others, key=lambda h: h.V, default=None)

    @staticmethod
    def label_of(h):
        return h.action[0][1]

    def learn(self, sentence, margin=0, limit=10):
        """Algorithm 2; -> (updates, decisions, errors)."""
        P, updates, decisions, errors = [], 0, 0, 0
        Q = self.queue(sentence, P)
        while Q:
            span = self.choose(Q)
            decisions += 1
            gold = self.gold_hypothesis(sentence, span)
            if sentence.allowed is not None:
                gold = self.best_right_hypothesis(sentence, span)
            rival = None if span.top.labels == gold.labels else span.top
            errors += rival is not None
            if rival is None and margin:
                other = self.rival(sentence, span, P)
                rival = other if other and margin >= span.top.V - other.V else None
            if rival is None:
                P = self.accept(span, P)
            else:
                self.move([gold.action], +sentence.weight)
                self.move([rival.action], -sentence.weight)
                updates += 1
            self.history.append(Counter(self.weights))
            if updates == limit * len(sentence.words):
                break
            Q = self.queue(sentence, P)
        return updates, decisions, errors

    def learn_early(self, sentence):
        """Accept what is chosen until gold's hypothesis is in no state of it, or in the end not on top."""
        P, decisions, errors = [], 0, 0
        Q = self.queue(sentence, P)
        while Q:
            span = self.choose(Q)
            decisions += 1
            gold = self.gold_hypothesis(sentence, span)
            right = [h.labels == gold.labels for h in span.states.values()]
            if sentence.allowed is not None:
                gold = self.best_extension(sentence, span)
                right = [self.is_right(sentence, span, h) for h in span.states.values()]
            errors += not right[0]
            whole = span.last - span.first + 1 == len(sentence.words)
            lost = not any(right) or (whole and not right[0])
            if lost:
                self.move(gold.actions, +sentence.weight)
                self.move(span.top.actions, -sentence.weight)
            self.history.append(Counter(self.weights))
            if lost:
                return 1, decisions, errors
            P = self.accept(span, P)
            Q = self.queue(sentence, P)
        return 0, decisions, errors

    def total(self):
        """The sum of the weights after all decisions."""
        total = Counter()
        for weights in self.history:
            total.update(weights)
        return total
