"""The harnesses whose result files fewbench reads: a new one is a file and a line here."""

from fewbench.readers.every_eval_ever import EveryEvalEver
from fewbench.readers.harness import Harness
from fewbench.readers.helm import Helm
from fewbench.readers.inspect_logs import InspectLogs
from fewbench.readers.lighteval import Lighteval
from fewbench.readers.lm_eval import LmEval
from fewbench.readers.lmms_eval import LmmsEval
from fewbench.readers.opencompass import OpenCompass
from fewbench.readers.vlmevalkit import VLMEvalKit

# In this order files are offered to them; what one takes the next does not see.
_ALL: tuple[Harness, ...] = (
    EveryEvalEver(),
    LmEval(),
    InspectLogs(),
    Helm(),
    OpenCompass(),
    Lighteval(),
    LmmsEval(),
    VLMEvalKit(),
)
HARNESSES: dict[str, Harness] = {harness.name: harness for harness in _ALL}
