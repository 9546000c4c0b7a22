"""A pytest class of promises that every method must keep, your own methods too.

A subclass supplies one fixture, the method:

    class TestMyMethod(MethodConformance):
        @pytest.fixture
        def method(self):
            return MyMethod()

`play` checks the protocol of asking and telling at every step, so each test checks it too.

What a pass shows, on small simulated tables:

- The method asks for the budget, no more and no less, and repeats itself under one seed, on any
  number of threads, beside other sessions.
- Estimates follow the answers. Nearly every answer counts, better targets get higher estimates,
  and the mean error has no sign. With every item run, the estimates are near the full scores
  before fewbench cuts them to what the answers allow.
- Nothing else changes the estimates: hidden answers, other targets, the order of targets, of
  telling, of source models and of items, the scale.
- Missing cells, constant scores, duplicate models and tables of a few models or items work, or
  are refused by a `MethodError`.

What a pass does not show:

- That the method is better than random sampling. `fewbench compare` measures that on your data.
- That estimates hold for targets unlike the source models. Here, targets are drawn like them.
- Small faults. Bias, the order of models and the order of items are judged by means over a few
  tables: a bias below about two percentage points passes.
- That the code cannot read files or other processes. Reading hidden answers is found where it
  changes an estimate or a choice of items in these tests.
"""

from fewbench.testing.playing import Played, play
from fewbench.testing.promises.asking import Asking
from fewbench.testing.promises.dependence import Dependence
from fewbench.testing.promises.quality import Quality
from fewbench.testing.promises.sessions import Sessions
from fewbench.testing.promises.tables import Tables

__all__ = ["MethodConformance", "Played", "StaticConformance", "play"]


class StaticConformance(Asking, Dependence, Tables, Quality):
    """The promises of the parts of a `StaticMethod`, a selector and a predictor.

    Its session is one class for all parts; the promises of sessions are tried on a few of them.
    """


class MethodConformance(StaticConformance, Sessions):
    """The promises of a method, each a test; see the module's docstring for how to use it."""
