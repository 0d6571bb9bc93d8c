"""The HTTP server of the command serve: the application of a saved model, run by uvicorn until SIGTERM or Ctrl-C."""

import argparse
import asyncio
import os
import socket
import sys
from contextlib import suppress

import uvicorn
from starlette.applications import Starlette

from structperc.errors import InputError
from structperc.loading import load
from structperc.serving import Limits, application
from structperc.serving.app import Requests
from structperc.serving.jobs import SentencesJob, label_jobs
from structperc.spelling import counted
from structperc.text.tokenizer import SENTENCES, TOKENIZERS

BACKLOG = 2048  # connections that the system keeps for the process


def run(options: argparse.Namespace) -> None:
    """Answer requests until SIGTERM or Ctrl-C, then those that are open, as far as the grace period allows.

    Raises InputError for a model that cannot be loaded, and for an address that is not available.
    """
    limits = Limits(
        options.max_body, options.max_waiting, options.max_together, options.max_tokens, options.max_seconds
    )
    limits.check()
    tagger = load(options.model, options.trust)
    columns = ["word", *tagger.columns]
    with suppress(InputError):  # a column that does not allow this value
        label_jobs(tagger, [SentencesJob([{column: ["."] for column in columns}], columns)])  # compiles all kernels
    app = application(tagger, limits, TOKENIZERS[options.tokens], SENTENCES[options.sentences])
    with _listening(options.host, options.port) as listener:
        host, port = listener.getsockname()[:2]
        print(f"Serving {options.model} at http://{host}:{port} (press Ctrl-C to stop)", file=sys.stderr, flush=True)
        with suppress(KeyboardInterrupt):  # uvicorn raises it again after its shutdown
            Server(app, app.state.requests, options.grace).run([listener])
    if rejected := app.state.requests.rejected:
        count = counted(rejected, "request")
        print(
            f"{count} could not be answered within --grace {options.grace} and received 503",
            file=sys.stderr,
            flush=True,
        )
    if app.state.requests.busy:
        os._exit(0)  # compiled code that runs during interpreter shutdown may crash


class Server(uvicorn.Server):
    """uvicorn that answers open requests with 503 shortly before the grace period ends.

    Args:
        app: the application.
        requests: the open ones.
        grace: seconds from the signal to the end.
    """

    def __init__(self, app: Starlette, requests: Requests, grace: int) -> None:
        super().__init__(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=grace))
        self._requests, self._rest = requests, grace - min(1.0, grace / 2)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and wait for the open ones."""
        asyncio.get_running_loop().call_later(self._rest, self._requests.shut_down)
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}:{port} ({error.strerror or error}); change --host or --port"
        ) from None
