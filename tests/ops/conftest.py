import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # the lattices and their oracle
