"""The laws share their worlds, which are imported from this folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
