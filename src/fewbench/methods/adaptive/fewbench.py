"""fewbench's own method: a Gaussian process over items, inside and beyond the sources.

Items are chosen to lower the posterior variance of the full score most (optimal design), by a
Gaussian process on the covariance of sources that answer as the target does (kriging, adaptive
testing), and by item characteristic curves that go on beyond the strongest source. The two are
averaged by how likely the target is beyond the sources (Bayesian model averaging). See
`fewbench.algorithms.kriging` for the mathematics and docs/methods/fewbench.md for what it reaches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, takewhile, zip_longest
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.kriging import (
    FAR,
    PILOT,
    Draw,
    KrigingModel,
    KrigingRun,
    SampledRun,
    SampleModel,
    next_together,
    pool_size,
    settle,
)
from fewbench.methods.adaptive.unrun import WithUnrun
from fewbench.methods.base import Method, Prediction, Session
from fewbench.methods.kriging import (
    NEEDS,
    item_costs,
    prediction_of,
    samples_unrun,
    source_model,
)
from fewbench.methods.needs import Need
from fewbench.methods.record import Drawing, Lead
from fewbench.methods.sources import carrying_sources
from fewbench.methods.written import check_number, write
from fewbench.scores import Scores

NOTHING = np.empty(0, dtype=np.intp)
UNLIKE = 0.3
"""Difference of two targets' mean scores on the same items above which they are unlike."""


@dataclass(frozen=True)
class Fewbench(Method):
    """Items that tell most of the full score, in rounds; inside and beyond the sources.

    The first rounds are small, as each shows which sources answer alike; each round brings the
    number of answers to `growth` times what it was: 5, 10, 20, 40, 80 ...

    - `first`: Items of the first round, the same for every target.
    - `growth`: How much each round adds; 1 asks item by item.
    - `cost`: Column of the items' attributes with what running each costs. Items then count by
      what they tell per unit of cost. The budget still counts items.
    - `together`: So many targets, in their order, run the same items, chosen to lower the sum of
      their variances: differences of their scores are more precise. They wait for one another.
    - `sources`: Number of independent sources that decides how items are chosen (default: that of
      the scores).

    With fewer than 20 independent sources all items are a sample. So are the later items of a
    target that is far beyond the sources, or whose answers do not fit them; the chances are then in
    proportion to what an item tells, per root of its cost. Items that no source ran are a random
    sample, as large a share of them as of the others.

    >>> Fewbench(first=8).describe()
    'fewbench(first=8)'
    """

    first: int = 5
    growth: float = 2.0
    cost: str | None = None
    together: int = 1
    sources: int | None = None
    needs: ClassVar[tuple[Need, ...]] = NEEDS
    extends: ClassVar[bool] = True
    reach: ClassVar[float] = FAR
    takes_parts: ClassVar[bool] = True

    @property
    def targets_apart(self) -> bool:
        """Whether a target's items are independent of the other targets."""
        return self.together == 1

    def for_sources(self, scores: Scores) -> "Fewbench":
        """Return the method that these sources decide on."""
        if self.sources is not None:
            return self
        return replace(self, sources=carrying_sources(scores.whole))

    def start(self, scores: Scores, budget: int, seed: int, targets: Sequence[str]) -> Session:
        """Fit the sources; MethodError if a setting is out of range or there are too few."""
        check_number("first", self.first, 1)
        check_number("growth", self.growth, 1, 100)
        check_number("together", self.together, 1)
        if samples_unrun(scores):
            begin = partial(FewbenchSession, self)
            return WithUnrun(begin, scores, budget, seed, targets, self.together)
        return FewbenchSession(self, scores, budget, seed, targets)

    def describe(self) -> str:
        """Return the method and its settings as the command line writes them."""
        return write("fewbench", self)


class FewbenchSession(Session):
    """Asks each target in rounds for the items that tell most of its score."""

    def __init__(
        self, method: Fewbench, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> None:
        super().__init__(targets, scores.n_items)
        self._method, self._scores, self._budget, self._seed = method, scores, budget, seed
        self._costs = item_costs(scores, method.cost)
        self._models: dict[int, SampleModel] = {}  # by size of the pool
        self._model(0)
        self._drawn: dict[tuple[SampleModel, Lead], list[Draw]] = {}  # of leads
        self._heard: dict[str, tuple[list[bytes], list[SampledRun]]] = {}  # by the first of a group

    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return each target's next round; those that answered first wait for their group."""
        chosen: dict[str, IntArray] = {}
        first: IntArray | None = None  # the same for all that have no answers and follow nobody
        for group in dict.fromkeys(self._group(name) for name in targets):
            asked = self._asked(group)
            left = self._budget - len(asked)
            if left <= 0:
                continue
            if not set(group) <= set(targets):
                chosen |= {name: np.empty(0, dtype=np.intp) for name in group if name in targets}
                continue
            begins = not len(asked) and self.record.lead(group[0]) is None
            items = first if begins and first is not None else self._next_of(group, asked, left)
            if begins:
                first = items
            if len(items):
                chosen |= dict.fromkeys(group, items)
        return chosen

    def _next_of(self, group: tuple[str, ...], asked: IntArray, left: int) -> IntArray:
        runs = self._runs(group)
        n = min(self._round(runs[0], len(asked)), left)
        candidates = runs[0].model.candidates
        places = np.searchsorted(candidates, asked)
        return candidates[next_together(runs, n, places, self._costs_of(runs[0].model))]

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict from both models, averaged, and from the sample where there is one."""
        runs = []
        for name in targets:
            group = self._group(name)
            run = self._runs(group)[group.index(name)]
            run = self._heard_again(name, run) if self.record.has_repeats(name) else run.copy()
            run.lost = np.searchsorted(run.model.candidates, self.record.lost(name))
            runs.append(run)
        return prediction_of(self._scores, runs[0].model, runs, tasks)

    def _heard_again(self, target: str, run: SampledRun) -> SampledRun:
        """Return a run that hears the means of several answers.

        Its sample stays that which the first answers chose, with their chances.
        """
        again, places = _begin(run.model), run.model.candidates
        for items in self.record.rounds(target):
            scores = self.record.scores(target)[items]
            has = np.isfinite(scores)
            again.hear(np.searchsorted(places, items[has]), scores[has])
        again.draws, again.checked = run.draws, run.checked
        return again

    def _group(self, target: str) -> tuple[str, ...]:
        """Return the targets that run the same items."""
        size, names = self._method.together, self.record.targets
        at = names.index(target) // size * size
        return names[at : at + size]

    def _asked(self, group: Sequence[str]) -> IntArray:
        every = [self.record.asked(name) for name in group]
        return every[0] if len(every) == 1 else np.unique(np.concatenate(every))

    def _round(self, run: SampledRun, done: int) -> int:
        """Return how many items the round after this number of answers has.

        A sample whose probabilities are settled is run at once.
        """
        if run.model.is_flat or (run.model.is_sampled and len(run.draws) > 1):
            return self._budget
        if not done:
            return self._method.first
        return max(1, int(np.ceil(done * self._method.growth - 1e-9)) - done)

    def _costs_of(self, model: SampleModel) -> FloatArray | None:
        return None if self._costs is None else self._costs[model.candidates]

    def _model(self, asked: int) -> SampleModel:
        """Return the sources' models with as many candidates as this number of items needs."""
        size = pool_size(asked, self._scores.n_items)
        if size not in self._models:
            self._models[size] = self._fit(asked)
        return self._models[size]

    def _fit(self, asked: int, include: IntArray | None = None) -> SampleModel:
        return source_model(self._scores, self._seed, asked, include, self._method.sources)

    def _runs(self, group: tuple[str, ...]) -> list[SampledRun]:
        """Return what a group's answers say; rounds that were used before are not used again."""
        record, asked = self.record, self._asked(group)
        model = self._model(len(asked))
        is_part = len(model.candidates) < model.n_items
        if is_part and not np.isin(asked, model.candidates).all():  # items that the user chose
            model = self._fit(len(asked), asked)
            self._models[pool_size(len(asked), self._scores.n_items)] = model
        rounds = list(zip_longest(*(record.rounds(name) for name in group), fillvalue=NOTHING))
        answered = [self._told(group, answers) for answers in rounds]
        heard, runs = self._heard.get(group[0], ([], []))
        lead, given = record.lead(group[0]), record.drawings(group[0])  # of a group of one
        n_led = 0 if lead is None else self._n_followed(model, lead, *self._whole(group[0]))
        if given is not None:  # chosen when the scores were others
            n_led = max(n_led, len(self._whole(group[0])[0]))
        if not runs or runs[0].model is not model or answered[: len(heard)] != heard:
            heard, runs = [], [_begin(model) for _ in group]
            if given is not None:
                for run in runs:
                    run.draws = [_as_draw(drawing, model.candidates) for drawing in given]
            elif lead is None or not n_led:
                settle(runs, NOTHING, self._budget, self._costs_of(model))
            elif n_led == len(lead.rounds):
                runs[0].draws = [*self._draws_of(model, lead)]
        open_items = {at for name in group for at in record.open(name).tolist()}
        for at in range(len(heard), len(rounds)):
            is_whole = not any(open_items.intersection(items.tolist()) for items in rounds[at])
            if not is_whole:  # what is kept is of whole rounds
                runs = [run.copy() for run in runs]
            for name, run, items in zip(group, runs, rounds[at], strict=True):
                answers = record.first_scores(name)[items]
                has = np.isfinite(answers)
                run.hear(np.searchsorted(model.candidates, items[has]), answers[has])
            if not is_whole:
                continue
            if at + 1 >= n_led:  # what comes next, its own answers choose
                before = np.unique(np.concatenate([*chain(*rounds[: at + 1])]))
                places, left = np.searchsorted(model.candidates, before), self._budget - len(before)
                settle(runs, places, left, self._costs_of(model))
            if at == len(heard):
                heard = [*heard, answered[at]]
                self._heard[group[0]] = heard, runs
        return runs

    def drawn(self, target: str) -> tuple[Drawing, ...]:
        """Return how a target's items were drawn, phase by phase."""
        group = self._group(target)
        run = self._runs(group)[group.index(target)]
        candidates, drawings = run.model.candidates, []
        asked = np.searchsorted(candidates, self._asked(group))
        for at, draw in enumerate(run.draws):
            until = run.draws[at + 1].before if at + 1 < len(run.draws) else asked
            places = until[draw.holds(until)]
            if len(places):
                chances = np.full(self._scores.n_items, np.nan)
                chances[candidates[places]] = draw.chances_of(len(places))[places]
                drawings.append(Drawing(candidates[draw.before], chances))
        return tuple(drawings)

    def next_led(self, target: str) -> IntArray:
        """Return the next round of the run that a target follows.

        None after 10 answers of two targets that are unlike, unless the items are a sample: items
        chosen for a weak model are a poor choice for a strong one.
        """
        items, lead = super().next_led(target), self.record.lead(target)
        if lead is None or not len(items):
            return items
        rounds, scores = self._whole(target)
        model = self._model(sum(map(len, lead.rounds)))
        return items if len(rounds) < self._n_followed(model, lead, rounds, scores) else NOTHING

    def _whole(self, target: str) -> tuple[list[IntArray], FloatArray]:
        """Return the first rounds without open items, and the target's scores."""
        open_, rounds = self.record.open(target), self.record.rounds(target)
        whole = takewhile(lambda items: not np.isin(items, open_).any(), rounds)
        return list(whole), self.record.first_scores(target)

    def _n_followed(
        self, model: SampleModel, lead: Lead, rounds: Sequence[IntArray], scores: FloatArray
    ) -> int:
        """Return after how many rounds of a lead a target's own answers choose."""
        drawn = self._draws_of(model, lead)
        n_chosen = len(drawn[0].before) if drawn else self._scores.n_items
        for n in range(1, lead.followed(rounds) + 1):
            items = np.concatenate(lead.rounds[:n])
            if len(items) >= n_chosen:
                break  # what comes is a sample
            apart = (scores - lead.scores)[items]
            apart = apart[np.isfinite(apart)]
            if len(apart) >= PILOT and abs(apart.mean()) > UNLIKE:
                return n
        return len(lead.rounds)

    def _draws_of(self, model: SampleModel, lead: Lead) -> list[Draw]:
        """Return the samples that the items of a lead are of, as the lead's own answers decided.

        They have the same probabilities for the target that follows: the probabilities do not
        depend on its answers.
        """
        if (model, lead) in self._drawn:
            return self._drawn[model, lead]
        run, n_led = _begin(model), 0
        if lead.lead is not None:
            n_led = self._n_followed(model, lead.lead, lead.rounds, lead.scores)
            if n_led == len(lead.lead.rounds):
                run.draws = [*self._draws_of(model, lead.lead)]
        places = [np.searchsorted(model.candidates, items) for items in lead.rounds]
        for at, items in enumerate(lead.rounds):
            if at >= n_led:
                before = np.unique(np.concatenate([NOTHING, *places[:at]]))
                settle([run], before, lead.budget - len(before), self._costs_of(model))
            answers = lead.scores[items]
            has = np.isfinite(answers)
            run.hear(places[at][has], answers[has])
        self._drawn[model, lead] = run.draws
        return run.draws

    def _told(self, group: tuple[str, ...], items: Sequence[IntArray]) -> bytes:
        """Return a round's items and answers."""
        scores = (self.record.first_scores(name)[at] for name, at in zip(group, items, strict=True))
        pairs = zip(items, scores, strict=True)
        return b"".join(at.tobytes() + answers.tobytes() for at, answers in pairs)


def _as_draw(drawing: Drawing, candidates: IntArray) -> Draw:
    """Return a phase of a sample by candidates."""
    before = np.searchsorted(candidates, np.intersect1d(drawing.before, candidates))
    return Draw(before, None, drawing.chances[candidates])


def _begin(model: SampleModel) -> SampledRun:
    """Start a target's run."""
    return KrigingRun(model) if isinstance(model, KrigingModel) else SampledRun(model)
