"""Training: the programs fit, validate, test, predict and rerank, their run folders and callbacks.

program, reranking          the programs; table and figure of boosting
configuration, overlays     configuration files and options: composed, checked, built
lightning_messages          messages and errors of Lightning
callbacks                   the end of a training; checkpoints; best, last and final weights
loggers, curves, report     metrics during a run and their figure; scores, cost and model card at its end
run_folders, predictions    folders of runs, and prediction files in them
child_process               a program that ends with its parent process
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
