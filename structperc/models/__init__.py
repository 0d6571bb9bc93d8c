"""Models: what labels text, is saved and is loaded, without Lightning.

base.py              base class: labels of corpora, saving and loading
chain_model.py       models of label sequences: scores of a lattice, non-local features, a decoder
biases.py            further decoders of a model, by name, and its temperature
saving.py            saved models as folders; model_format.py: their two files, read without PyTorch
predictor_entry.py   the entry of a saved model from which it loads without PyTorch
checkpoint_files.py  models in the checkpoints of a trainer
hub.py               cards of models, and repositories of the hub
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
