import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # the lattices and their oracle
os.environ.setdefault("TRITON_INTERPRET", "1")  # read where kernels are defined: without a GPU they are interpreted
