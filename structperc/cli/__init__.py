"""The command line: the options, work and output of each command.

Files for several commands: main (dispatch), arguments, output, tagging (of tag), server (of serve).
All are imported for every command line, so they import what a command needs only when it runs.
"""

from structperc.cli import analysis, configurations, data_files, experiments, models, select, serve, tag, train
from structperc.cli.arguments import Command

COMMANDS: tuple[Command, ...] = (
    configurations.configs,
    configurations.init,
    data_files.check,
    data_files.convert,
    data_files.vectors,
    train.FIT,
    train.VALIDATE,
    train.TEST,
    train.PREDICT,
    train.RERANK,
    experiments.SWEEP,
    experiments.study,
    experiments.NOISE,
    tag.tag,
    select.select,
    serve.serve,
    models.evaluate,
    models.pseudo_label,
    models.calibrate,
    models.compare,
    analysis.weights,
    analysis.candidates,
    analysis.explain,
    analysis.decisions,
    analysis.reliability,
    models.shrink,
    models.push,
)
