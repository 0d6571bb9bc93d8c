"""Structured prediction over sequences; packages in the order of the data flow.

kernels             loops over labels and features compiled for a CPU, without PyTorch
ragged              lists of ids of different lengths in one tensor
structures          the tensors that pass from one package to another
ops                 dynamic programs as compiled operators, for each device
text                running text -> tokens with character offsets
data                files, hub data sets, the embedded corpus -> sequences with labels of a tag scheme
features            tokens -> feature ids
predictor           predictions of saved taggers; those of sparse features need no PyTorch
encoders            tokens -> vectors
scorers             ids or vectors -> Lattice
chain               Lattice -> best paths, k best, marginals: exact dynamic programs
nonlocal_features   candidates -> features of whole label sequences -> scores
criteria            gold against candidates -> losses
builder             class paths and options -> objects: parts of configurations and of saved models
nn                  heads for your own PyTorch models
optim               gradients -> weights
online              updates after each sequence of a mini-batch, in one compiled call
guided              easiest-first tagging without a lattice: labels one by one
reports             tables, pages and figures
metrics             labels against gold -> scores
datamodules         corpora -> mini-batches: data modules
models              parts -> labels and probabilities of text; saved models
taggers             Lightning modules that train models
loading             a saved model as a predictor
tagging             files read as corpora, labelled block by block, and written
reranking           candidate lists -> re-rankers, and the training of both models
training            programs, run folders, callbacks
experiments         studies and sweeps: many trainings, one table
analysis            weights of a model, and explanations of its decisions
serving             a saved tagger behind HTTP
sklearn             taggers as estimators of scikit-learn
cli                 the command line

Packages before `datamodules`, `models` and `loading` need neither Lightning nor datasets. `import structperc` imports
none of the packages. `structperc.load` returns a saved model, and imports PyTorch only if the model needs it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
