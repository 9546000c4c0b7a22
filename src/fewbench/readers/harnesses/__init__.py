"""The harnesses whose result files fewbench reads: our own, and those that packages add."""

from collections.abc import Iterator

from fewbench._plugins import Registry, added
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


def _added() -> Iterator[tuple[str, Harness, str]]:
    """Yield the readers that packages add, as classes or made."""
    for one in added("readers"):
        reader = one.thing() if isinstance(one.thing, type) else one.thing
        lacks = [name for name in ("name", "files", "find", "read") if not hasattr(reader, name)]
        if lacks or reader.name != one.name:
            raise one.refused(f"a reader without {lacks[0]}" if lacks else "its name differs")
        yield one.name, reader, one.package


HARNESSES: Registry[Harness] = Registry({harness.name: harness for harness in _ALL}, _added)
"""Readers by name, in the order in which files are offered to them."""
