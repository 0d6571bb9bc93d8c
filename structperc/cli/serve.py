"""structperc serve MODEL: a saved model behind HTTP."""

from importlib.util import find_spec

from structperc.cli.arguments import Command, CommandParser, add_model
from structperc.errors import InputError
from structperc.text.tokenizer import SENTENCES, TOKENIZERS

NEEDED = ("starlette", "uvicorn", "prometheus_client")


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("serve", "Label what is sent by HTTP: POST /annotate and /tag, GET /health and /metrics.")
    add_model(made)
    made.add_argument("--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1: this machine)")
    made.add_argument("--port", type=int, default=8000, help="default 8000; 0: any that is free")
    cut = "how running text is cut into tokens: as CoNLL-2003 or as UD English (default conll)"
    made.add_argument("--tokens", choices=TOKENIZERS, default="conll", help=cut)
    begin = "where its sentences end: by rules (default), with each line, or with the text"
    made.add_argument("--sentences", choices=SENTENCES, default="rules", help=begin)
    made.add_argument("--max-body", type=int, default=2**20, help="bytes of a request at most (default 1048576)")
    tokens = "tokens of a request at most (default 262144)"
    made.add_argument("--max-tokens", type=int, default=2**18, help=tokens)
    seconds = "seconds until the body of a request has arrived, and until it is answered, at most (default 60)"
    made.add_argument("--max-seconds", type=float, default=60, help=seconds)
    made.add_argument("--max-waiting", type=int, default=256, help="requests that wait at most (default 256)")
    made.add_argument("--max-together", type=int, default=32, help="requests labelled together at most (default 32)")
    stop = "seconds to the end of the service once it is asked to stop; requests open until then get 503 (default 10)"
    made.add_argument("--grace", type=int, default=10, help=stop)
    return made


def run(arguments: list[str]) -> None:
    """Load the model and answer until SIGTERM or Ctrl-C, and then what is open, as far as --grace allows."""
    options = parser().parse_args(arguments)
    if not 0 <= options.port < 2**16:
        raise InputError(f"--port must be between 0 and 65535, got {options.port}")
    if options.grace < 1:
        raise InputError(f"--grace must be at least 1, got {options.grace}")
    if missing := [package for package in NEEDED if find_spec(package) is None]:
        raise InputError(f"serve needs {', '.join(missing)}; install what it needs: pip install 'structperc[serve]'")

    from structperc.cli.server import serve

    serve(options)


SERVE = Command("serve", "MODEL", "label what is sent by HTTP", run)
