"""The program as the child of another process: it ends when standard input does, as its parent is gone then.

It is started by `python -m structperc.training.child_process fit ...`.
"""

import os
import runpy
import threading


def end_with_parent() -> None:
    """End the process at once when standard input ends, as if it was killed; this never returns.

    Checkpoints and results that are being written then appear whole or not at all.
    """
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    runpy.run_module("structperc", run_name="__main__", alter_sys=True)
