"""Structured prediction over sequences, stage by stage in the order of the data flow.

structures          every tensor that crosses the border between two stages
data                files, hub data sets, the embedded corpus -> sequences with labels of a tag scheme
features            tokens -> feature ids
encoders            tokens -> vectors
scorers             ids or vectors -> Lattice
chain               Lattice -> best paths, k best, marginals: exact dynamic programs
nonlocal_features   candidates -> counts of what only whole labellings show -> scores
criteria            gold against rivals -> losses
optim               gradients -> weights
rerankers           candidate lists and the scores of second models
guided              the other road, without a lattice: labels one by one, the easiest first
metrics             labels against gold -> scores
training            all of it as Lightning modules; saved models
commands            what the command line offers, one file per command
cli                 the program

Importing a stage before `training` needs neither Lightning nor datasets; `import structperc` alone imports nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from structperc.version import __version__

if TYPE_CHECKING:
    from structperc.chain import kbest, log_partition, marginals, max_marginals, viterbi
    from structperc.data.corpus import Corpus
    from structperc.data.labels import LabelSet
    from structperc.errors import InputError
    from structperc.features import FeatureExtractor
    from structperc.structures import Batch, Candidates, Lattice
    from structperc.training.tagger import Tagger

__all__ = [
    "__version__",
    "Batch",
    "Lattice",
    "Candidates",
    "Corpus",
    "LabelSet",
    "FeatureExtractor",
    "viterbi",
    "kbest",
    "log_partition",
    "marginals",
    "max_marginals",
    "Tagger",
    "InputError",
]
_STAGES = (
    "structures",
    "data",
    "features",
    "encoders",
    "scorers",
    "chain",
    "nonlocal_features",
    "criteria",
    "optim",
    "rerankers",
    "guided",
    "metrics",
    "training",
)
_PLACES = {
    "structures": ("Batch", "Lattice", "Candidates"),
    "data.corpus": ("Corpus",),
    "data.labels": ("LabelSet",),
    "features": ("FeatureExtractor",),
    "chain": ("viterbi", "kbest", "log_partition", "marginals", "max_marginals"),
    "training.tagger": ("Tagger",),
    "errors": ("InputError",),
}


def __getattr__(name: str) -> Any:
    """Public names and stages are found on first use: the command line answers without PyTorch."""
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"structperc.{module}"), name)
    if name in _STAGES:
        return import_module(f"structperc.{name}")
    raise AttributeError(f"module 'structperc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_STAGES})
