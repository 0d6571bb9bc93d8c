"""The command line: the options, work and output of each command.

Files for several commands: main (dispatch), arguments, messages, recipes (of init), server (of serve).
All are imported for every command line, so they import what a command needs only when it runs.
"""

from structperc.cli import configurations, data_files, evaluate, experiments, explain, models, select, serve, tag, train
from structperc.cli.arguments import Command

COMMANDS: tuple[Command, ...] = (
    configurations.configs,
    configurations.init,
    data_files.CHECK,
    data_files.convert,
    data_files.vectors,
    train.FIT,
    train.VALIDATE,
    train.TEST,
    train.PREDICT,
    train.RERANK,
    experiments.STUDY,
    evaluate.evaluate,
    explain.explain,
    models.calibrate,
    tag.tag,
    select.select,
    serve.serve,
    models.push,
)
