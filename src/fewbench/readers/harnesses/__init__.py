"""The harnesses whose result files fewbench reads: a new one is a file and a line here."""

from fewbench.readers.harness import Harness
from fewbench.readers.harnesses.evalplus import EvalPlus
from fewbench.readers.harnesses.evalscope import EvalScope
from fewbench.readers.harnesses.every_eval_ever import EveryEvalEver
from fewbench.readers.harnesses.helm import Helm
from fewbench.readers.harnesses.inspect_logs import InspectLogs
from fewbench.readers.harnesses.lighteval import Lighteval
from fewbench.readers.harnesses.livecodebench import LiveCodeBench
from fewbench.readers.harnesses.lm_eval import LmEval
from fewbench.readers.harnesses.lmms_eval import LmmsEval
from fewbench.readers.harnesses.mmlu_pro import MMLUPro
from fewbench.readers.harnesses.opencompass import OpenCompass
from fewbench.readers.harnesses.promptfoo import Promptfoo
from fewbench.readers.harnesses.swe_bench import SweBench
from fewbench.readers.harnesses.tau2_bench import Tau2Bench
from fewbench.readers.harnesses.terminal_bench import TerminalBench
from fewbench.readers.harnesses.vlmevalkit import VLMEvalKit

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
    SweBench(),
    EvalPlus(),
    EvalScope(),
    Promptfoo(),
    TerminalBench(),
    Tau2Bench(),
    MMLUPro(),
    LiveCodeBench(),
)
HARNESSES: dict[str, Harness] = {harness.name: harness for harness in _ALL}
