"""What serve does: the application of a saved model, run by uvicorn until the process is asked to stop."""

import argparse
import socket
import sys
from contextlib import suppress

import uvicorn

from structperc.errors import InputError
from structperc.light import Labeller
from structperc.loading import load
from structperc.serving import Limits, application
from structperc.serving.questions import SentencesQuestion, answers
from structperc.text.sentences import SENTENCES
from structperc.text.tokenizer import TOKENIZERS

BACKLOG = 2048  # connections that the system keeps for the process


def serve(options: argparse.Namespace) -> None:
    """Answer requests until SIGTERM or Ctrl-C; those that are open then are answered before the end.

    Raises InputError for a model that cannot be loaded, and for an address that cannot be listened at.
    """
    limits = Limits(options.max_body, options.max_waiting, options.max_together)
    limits.check()
    tagger = load(options.model, options.trust)
    _warm(tagger)
    app = application(tagger, limits, TOKENIZERS[options.tokens], SENTENCES[options.sentences])
    with _listening(options.host, options.port) as listener:
        host, port = listener.getsockname()[:2]
        print(f"{options.model} answers at http://{host}:{port}; Ctrl-C ends it", file=sys.stderr, flush=True)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=options.grace)
        with suppress(KeyboardInterrupt):  # which uvicorn raises again when all is answered
            uvicorn.Server(config).run([listener])


def _warm(tagger: Labeller) -> None:
    """Answer a question, so that all is compiled before the first request."""
    columns = ["word", *tagger.features.columns]
    with suppress(InputError):  # of a column in which this is no value
        answers(tagger, [SentencesQuestion([{column: ["."] for column in columns}], columns)])


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise InputError(
            f"cannot listen at {host}:{port} ({error.strerror or error}); change --host or --port"
        ) from None
