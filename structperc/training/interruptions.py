"""Commands that are interrupted, by Ctrl-C or SIGTERM, say how to resume."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytorch_lightning.utilities.exceptions import SIGTERMException

from structperc.training.run_folders import checkpoint

OPTION = "--ckpt_path"


@contextmanager
def resume_hint(command: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Let an interruption within the block end with a message that says by which command to go on.

    The command is asked for when the interruption comes.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as end:
        if not _interrupted(end):
            raise
        raise KeyboardInterrupt(f"go on with: {shlex.join(['structperc', *command()])}") from None


def _interrupted(end: BaseException) -> bool:
    """Also where the trainer has made it an end of the program."""
    return isinstance(end, KeyboardInterrupt | SIGTERMException) or isinstance(end.__context__, KeyboardInterrupt)


def resuming(command: Sequence[str], last: Path, root: Path) -> list[str]:
    """Return a training command changed so that it goes on from a checkpoint of one of the runs under a root."""
    kept = list(command)
    for at in reversed([i for i, word in enumerate(kept) if word.partition("=")[0] == OPTION]):
        del kept[at : at + (1 if "=" in kept[at] else 2)]
    newest = checkpoint(root, "last") == last
    return [*kept, OPTION, "last" if newest else str(last)]
