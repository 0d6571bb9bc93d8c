"""Where what the kill tests share is found."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "encoders")]  # tiny_models.py
