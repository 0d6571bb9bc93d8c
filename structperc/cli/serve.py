"""structperc serve MODEL: a saved model behind HTTP."""

from argparse import Namespace
from importlib.util import find_spec

from structperc.cli.arguments import CommandParser, add_model, add_splitting, command
from structperc.errors import InputError

NEEDED = ("starlette", "uvicorn", "prometheus_client")


def _arguments(parser: CommandParser) -> None:
    add_model(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1: this machine)")
    parser.add_argument("--port", type=int, default=8000, help="default 8000; 0: any that is free")
    add_splitting(parser)
    parser.add_argument("--max-body", type=int, default=2**20, help="bytes of a request at most (default 1048576)")
    tokens = "tokens of a request at most (default 262144)"
    parser.add_argument("--max-tokens", type=int, default=2**18, help=tokens)
    seconds = "seconds until the body of a request has arrived, and until it is answered, at most (default 60)"
    parser.add_argument("--max-seconds", type=float, default=60, help=seconds)
    parser.add_argument("--max-waiting", type=int, default=256, help="requests that wait at most (default 256)")
    parser.add_argument("--max-together", type=int, default=32, help="requests labelled together at most (default 32)")
    stop = "seconds to the end of the service once it is asked to stop; requests open until then get 503 (default 10)"
    parser.add_argument("--grace", type=int, default=10, help=stop)


@command("MODEL", "label what is sent by HTTP", _arguments)
def serve(options: Namespace) -> None:
    """Label what is sent by HTTP: POST /annotate and /tag, GET /health and /metrics."""
    if not 0 <= options.port < 2**16:
        raise InputError(f"--port must be between 0 and 65535, got {options.port}")
    if options.grace < 1:
        raise InputError(f"--grace must be at least 1, got {options.grace}")
    if missing := [package for package in NEEDED if find_spec(package) is None]:
        raise InputError(f"serve needs {', '.join(missing)}; install what it needs: pip install 'structperc[serve]'")

    from structperc.cli.server import run

    run(options)
