"""Readers of the logs of harnesses, one file or folder each."""

from fewbench.readers.harness import Harness
from fewbench_logs.harnesses.evalplus import EvalPlus
from fewbench_logs.harnesses.evalscope import EvalScope
from fewbench_logs.harnesses.every_eval_ever import EveryEvalEver
from fewbench_logs.harnesses.helm import Helm
from fewbench_logs.harnesses.lighteval import Lighteval
from fewbench_logs.harnesses.livecodebench import LiveCodeBench
from fewbench_logs.harnesses.lmms_eval import LmmsEval
from fewbench_logs.harnesses.mmlu_pro import MMLUPro
from fewbench_logs.harnesses.opencompass import OpenCompass
from fewbench_logs.harnesses.promptfoo import Promptfoo
from fewbench_logs.harnesses.swe_bench import SweBench
from fewbench_logs.harnesses.tau2_bench import Tau2Bench
from fewbench_logs.harnesses.terminal_bench import TerminalBench
from fewbench_logs.harnesses.vlmevalkit import VLMEvalKit

# In this order files are offered to them; what one takes the next does not see.
_ALL: tuple[Harness, ...] = (
    EveryEvalEver(),
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
READERS: dict[str, Harness] = {reader.name: reader for reader in _ALL}
