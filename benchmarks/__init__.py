"""Timings side by side with peers, both sides in one run: python -m benchmarks [--smoke] [--only NAME].

A benchmark is a module with `run(smoke) -> rows`; smoke means sizes that take seconds. A row is a dict:

what, size    what is measured, and how much of it
ours, peer    the two figures; peer is None where there is no other side
unit          of both, such as "tokens/s" or "s/epoch"
ratio         of both, such that the target says which way is better
target        a bound on the ratio ("2", "≤ 1.5"), a bound on ours ("80000 tokens/s"), or None; "≥" is understood
"""

BENCHMARKS = (
    "extraction",
    "viterbi",
    "likelihood",
    "threads",
    "scoring",
    "kbest",
    "semi_markov",
    "rescoring",
    "epoch",
    "crf",
    "feature_dicts",
    "tagging",
    "serving",
    "start",
    "scale",
    "many_labels",
    "boosting",
    "guided",
    "neural",
    "mixing",
    "hashing",
    "pos_peers",
)
