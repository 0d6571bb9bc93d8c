"""How classes are named in saved models and configurations."""

import sys

CLASS, OPTIONS = "class_path", "init_args"
LEARNED = "learned"  # beside them, what a part of a saved model has taken from its training data
LABELLING = "labelling"  # beside them, all that new text needs of a criterion of a user's own


def class_path_of(cls: type) -> str:
    """Return the dotted path of a class: that of the room which exports it, else that of its file."""
    room = ".".join(cls.__module__.split(".")[:2])
    public = getattr(sys.modules.get(room), cls.__qualname__, None) is cls
    return f"{room if public else cls.__module__}.{cls.__qualname__}"
