"""The program as a module: python -m structperc runs the command line."""

import sys

from structperc.cli.main import main

sys.exit(main())
