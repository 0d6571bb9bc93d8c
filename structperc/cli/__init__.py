"""The commands: one file for each, with its options, its work and its printing.

command.py         what a command is; the parser whose mistakes are one line
labelled_file.py   options of the commands that read a file with gold labels
saved_model.py     the argument of those that load a model, and whose code that may run
data_files.py      options of the commands that read labelled files without a model
tagging.py         what tag does; listing.py: what it shows by whole taggers alone; tag_files.py: with several files
comparing.py       what compare does; serving.py: what serve does
complaint.py       one line about what ended a command
messages.py        what is told beside its output
program.py         fit, validate, test, predict and rerank, which share LightningCLI
importing.py       imports of a training without looking for garbage

These files are imported for every command line, so they import what a command needs only when it runs.
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
