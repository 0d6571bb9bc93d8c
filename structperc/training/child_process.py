"""The program as the child of another process: it ends with its parent, when standard input ends.

Start it by `python -m structperc.training.child_process fit ...`.
"""

import os
import runpy
import threading


def end_with_parent() -> None:
    """Wait for the end of standard input, then exit without cleaning up.

    Unfinished checkpoints and results do not appear under their names.
    """
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    runpy.run_module("structperc", run_name="__main__", alter_sys=True)
