"""Timings side by side with peers, both sides in one run: python -m benchmarks [--smoke] [--only NAME].

A benchmark is a module with `run(smoke) -> rows`; smoke means sizes that take seconds. A row is a dict:

what, size    what is measured and how much of it
ours, peer    the two figures
unit          such as "tokens/s" (more is better) or "s/epoch" (less is better)
ratio         ours / peer
target        a bound on the ratio (1.5), a bound on ours ("80000 tokens/s"), or None
"""

BENCHMARKS = ("extraction", "viterbi", "kbest", "epoch")
