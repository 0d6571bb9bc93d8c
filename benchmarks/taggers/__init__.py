"""Other taggers on the same column files: they learn, label, and measure what that costs.

Each module trains one system by the recommendations of its own documentation::

    python -m benchmarks.taggers.MODULE --train FILE --dev FILE --output FOLDER [--seed 1] [NAME=FILE ...]

FOLDER then has dev.conll and NAME.conll, with word, gold and predicted label, `costs.json`, and `model`. Each system
has a virtual environment of its own from `requirements/MODULE.txt`; none of them is a dependency of structperc.
`run.sh` has the commands of all tables, `entities.yaml` and the other studies score the predictions.
"""
