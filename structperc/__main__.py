"""The program as a module: python -m structperc runs the command line."""

import sys

from structperc.cli import main

sys.exit(main())
