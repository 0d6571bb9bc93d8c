"""The command line: one file per command, with its options, its work and its printing.

Files for several commands: main (dispatch), arguments, output, tagging (of tag), server (of serve).
All are imported for every command line, so they import what a command needs only when it runs.
"""

from structperc.cli.arguments import Command
from structperc.cli.candidates import CANDIDATES
from structperc.cli.check import CHECK
from structperc.cli.compare import COMPARE
from structperc.cli.configs import CONFIGS
from structperc.cli.decisions import DECISIONS
from structperc.cli.evaluate import EVALUATE
from structperc.cli.explain import EXPLAIN
from structperc.cli.init import INIT
from structperc.cli.push import PUSH
from structperc.cli.reliability import RELIABILITY
from structperc.cli.serve import SERVE
from structperc.cli.shrink import SHRINK
from structperc.cli.study import STUDY
from structperc.cli.sweep import SWEEP
from structperc.cli.tag import TAG
from structperc.cli.train import FIT, PREDICT, RERANK, TEST, VALIDATE
from structperc.cli.vectors import VECTORS
from structperc.cli.weights import WEIGHTS

COMMANDS: tuple[Command, ...] = (
    CONFIGS,
    INIT,
    CHECK,
    VECTORS,
    FIT,
    VALIDATE,
    TEST,
    PREDICT,
    RERANK,
    SWEEP,
    STUDY,
    TAG,
    SERVE,
    EVALUATE,
    COMPARE,
    WEIGHTS,
    CANDIDATES,
    EXPLAIN,
    DECISIONS,
    RELIABILITY,
    SHRINK,
    PUSH,
)
