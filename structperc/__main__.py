"""python -m structperc."""

import sys

from structperc.cli import main

sys.exit(main())
