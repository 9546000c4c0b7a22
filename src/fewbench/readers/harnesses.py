"""The harnesses whose result files fewbench reads: a new one is a file and a line here."""

from fewbench.readers.harness import Harness
from fewbench.readers.lm_eval import LmEval

# In this order files are offered to them; what one takes the next does not see.
HARNESSES: dict[str, Harness] = {harness.name: harness for harness in (LmEval(),)}
