"""A saved tagger behind HTTP: running text -> spans of its characters, sentences -> labels.

questions.py   what is asked: a text, or sentences of a document, and what of the tagger's answer is given back
batcher.py     questions that wait together are labelled together
body_limit.py  bodies that are too large, refused before they are read
counters.py    what has been asked and how long it took, for Prometheus
app.py         the application of FastAPI

It needs the extra `serve`. The command `structperc serve` runs the application by uvicorn.
"""

from typing import TYPE_CHECKING

from structperc.on_first_use import on_first_use

if TYPE_CHECKING:
    from structperc.serving.app import application
    from structperc.serving.limits import Limits

__all__ = ["application", "Limits"]
__getattr__ = on_first_use(
    __name__, {"structperc.serving.app": ["application"], "structperc.serving.limits": ["Limits"]}
)
