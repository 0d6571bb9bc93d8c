"""Structured prediction over sequences; the packages stand in the order of the data flow.

kernels             loops over labels and features compiled for a CPU, without PyTorch
ragged              lists of ids of different lengths in one tensor
structures          every tensor that passes from one package to another
ops                 dynamic programs as compiled operators, for each device
text                running text -> tokens with character offsets
data                files, hub data sets, the embedded corpus -> sequences with labels of a tag scheme
features            tokens -> feature ids
predictor           saved taggers of sparse features that label without PyTorch
encoders            tokens -> vectors
scorers             ids or vectors -> Lattice
chain               Lattice -> best paths, k best, marginals: exact dynamic programs
nonlocal_features   candidates -> counts of what only whole label sequences show -> scores
criteria            gold against candidates -> losses
builder             class paths and options -> objects: parts of configurations and of saved models
nn                  heads for PyTorch models of one's own
optim               gradients -> weights
online              sequences of a mini-batch learned one after the other, in one compiled call
guided              easiest-first tagging without a lattice: labels one by one
reports             tables, pages and figures as people see them
metrics             labels against gold -> scores
datamodules         corpora -> mini-batches: data modules
taggers             all of it as Lightning modules; how they label and how they are saved
loading             a saved model as a predictor
reranking           candidate lists -> re-rankers, and how both models are trained
training            programs, run folders, callbacks
experiments         studies and sweeps: many trainings, one table
analysis            what a model has learned, and why it decides as it does
serving             a saved tagger behind HTTP
sklearn             taggers as estimators of scikit-learn
cli                 the command line, one file per command

Packages before `datamodules` need neither Lightning nor datasets; `import structperc` imports nothing else.
`structperc.load` gives a saved model, ready to label, and imports PyTorch only where the model needs it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
