"""python train.py fit -c configs/quickstart.yaml: the same program as `structperc`."""

import sys

from structperc.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
