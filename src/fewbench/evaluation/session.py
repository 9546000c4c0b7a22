"""Evaluation: the ask / tell / estimate session that a user holds."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from fewbench._names import some
from fewbench._threads import one_thread
from fewbench._version import __version__
from fewbench.errors import AnswersError, EvaluationError, ScoresError
from fewbench.evaluation.answers import AnswerBook, Taken, match_models
from fewbench.evaluation.assemble import Said, make_estimate
from fewbench.evaluation.bounds import bound_score
from fewbench.evaluation.estimate import Estimate
from fewbench.evaluation.intervals import ErrorModel
from fewbench.evaluation.journal import Header, Journal, Told
from fewbench.evaluation.opening import (
    check_answered,
    check_budget,
    check_scores,
    check_settings,
    check_subset,
    check_targets,
    with_items,
)
from fewbench.evaluation.ranks import past_scores
from fewbench.evaluation.sampling import check_level, sampling_effect
from fewbench.methods import (
    Answers,
    Method,
    Provenance,
    Session,
    StaticMethod,
    Subset,
    find_method,
    obstacle,
)
from fewbench.methods.base import IntArray
from fewbench.methods.static import StaticSession
from fewbench.scores import Scores, load_scores
from fewbench.scores.conditions import Comparison, compare_conditions


class Evaluation:
    """Ask which items to run, tell the answers, estimate the full score.

    Parameters
    ----------
    scores : Scores
        The sources. A target may not be among them.
    method : str or Method
        A name of the catalogue, a combination written out, or a method of your own.
    budget : int
        How many items each target is run on.
    targets : sequence of str
        Names of the models to be estimated.
    seed : int
        All randomness follows from it.
    subset : Subset, optional
        For a static method: items chosen before, instead of choosing now. A subset of your own
        (without provenance) makes a method of its own: its items, the method's predictor.

    Raises
    ------
    MethodError, EvaluationError
        If the method or budget does not fit, or a target is among the sources.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> answers = np.random.default_rng(0).random((12, 40)) < np.linspace(0.2, 0.9, 12)[:, None]
    >>> scores = from_arrays(answers, models=[f"m{i}" for i in range(12)])
    >>> evaluation = Evaluation(scores, "random", budget=8, targets=["new"])
    >>> asked = evaluation.ask()["new"]
    >>> len(asked)
    8
    >>> evaluation.tell("new", dict.fromkeys(asked, 1.0))
    0
    >>> evaluation.estimate()["new"].score
    1.0
    """

    def __init__(
        self,
        scores: Scores,
        method: str | Method,
        budget: int,
        targets: Sequence[str] = ("target",),
        seed: int = 0,
        *,
        subset: Subset | None = None,
    ) -> None:
        check_budget(budget, scores.n_items)
        check_targets(scores, targets)
        if seed < 0:
            raise EvaluationError(f"the seed {seed} is negative", hint="use 0 or more")
        self.scores = scores
        self.method = find_method(method) if isinstance(method, str) else method
        if subset is not None:
            self.method = with_items(self.method, subset)
        self.targets = tuple(targets)
        self.provenance = Provenance(
            method=method if isinstance(method, str) else method.describe(),
            settings=self.method.describe(),
            budget=budget,
            seed=seed,
            fingerprint=scores.fingerprint,
            average=scores.average,
            version=__version__,
        )
        self._session = self._start(subset)
        self._book = AnswerBook(scores, self.targets)
        self._tells: list[Told] = []
        self._journal: Journal | None = None

    def _start(self, subset: Subset | None) -> Session:
        budget, seed = self.provenance.budget, self.provenance.seed
        if subset is None or not isinstance(self.method, StaticMethod):
            if error := obstacle(self.method, self.scores):
                raise error
            with one_thread():
                return self.method.start(self.scores, budget, seed, self.targets)
        if error := obstacle(self.method.predictor, self.scores):  # its selector is not run
            raise error
        check_subset(subset, self.provenance)
        return StaticSession(self.method.predictor, self.scores, subset, seed, self.targets)

    @property
    def subset(self) -> Subset | None:
        """The chosen items, if the method chose them all before any target is run."""
        if not isinstance(self._session, StaticSession):
            return None
        return self._session.subset.model_copy(update={"provenance": self.provenance})

    # -- on disk -----------------------------------------------------------------------------

    def save(
        self, folder: str | os.PathLike[str], scores_path: str | os.PathLike[str] | None = None
    ) -> None:
        """Keep this evaluation in a folder from now on: every tell is written before it returns.

        Parameters
        ----------
        folder : path
            Made if needed; EvaluationError if it holds an evaluation already.
        scores_path : path, optional
            Where the scores lie, so that `open` finds them by itself.
        """
        journal = Journal(Path(folder))
        journal.create(
            Header(
                scores=None if scores_path is None else str(Path(scores_path).resolve()),
                targets=self.targets,
                subset=self.subset,
                provenance=self.provenance,
            )
        )
        for told in self._tells:  # in the order told: what a method asks may depend on it
            journal.append(told)
        self._journal = journal

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        scores: Scores | None = None,
        method: Method | None = None,
    ) -> "Evaluation":
        """Open a saved evaluation where it stopped: nothing told is lost or asked again.

        Parameters
        ----------
        folder : path
        scores : Scores, optional
            Those it was opened with; by default they are read from where they were.
        method : Method, optional
            For a method that is not of the catalogue.

        Raises
        ------
        EvaluationError
            If there is none, the scores are others, or a file is damaged.
        """
        journal = Journal(Path(folder))
        header = journal.header()
        made = header.provenance
        if scores is None:
            if header.scores is None:
                raise EvaluationError(
                    f"{folder}: the evaluation does not say where its scores lie",
                    hint="give the scores when opening it",
                )
            scores = load_scores(header.scores).averaged(made.average)
        check_scores(scores, made, str(folder))
        evaluation = cls(
            scores,
            method or made.method,
            made.budget,
            header.targets,
            made.seed,
            subset=header.subset,
        )
        check_settings(evaluation.provenance, made, str(folder))
        for number, told in enumerate(journal.replay(), start=1):
            try:
                answers = evaluation._book.from_record(told)
                evaluation._tell(
                    told.target, answers, accept_fractions=True, differences=told.differences
                )
            except (AnswersError, ScoresError) as error:
                raise EvaluationError(
                    f"{folder}: tell {number} does not fit the evaluation: {error.message}",
                    hint="the journal was changed, or the method now asks for other items",
                ) from error
        evaluation._journal = journal
        return evaluation

    # -- ask and tell ------------------------------------------------------------------------

    def ask(self) -> dict[str, list[str]]:
        """Return what each target should be run on next: ids of items not answered yet.

        Targets that need nothing more are left out, and so are those that wait (see `waiting`).
        Asking again returns the same.
        """
        pending = {}
        for target, items in self._session.ask().items():
            answered = self._book.answered(target)
            left = [str(self.scores.item_ids[at]) for at in items.tolist() if at not in answered]
            if left:
                pending[target] = left
        return pending

    def waiting(self) -> list[str]:
        """Return the targets that are asked again once others have answered."""
        return [target for target, items in self._session.ask().items() if not len(items)]

    def tell(
        self,
        target: str,
        answers: Mapping[str, float],
        probabilities: Mapping[str, ArrayLike] | None = None,
        *,
        accept_fractions: bool = False,
    ) -> int:
        """Take a target's answers, all at once or in parts.

        Parameters
        ----------
        target : str
        answers : mapping of item id to score
            On the user's scale. An item may be told again with the same score.
        probabilities : mapping of item id to option probabilities, optional
            For methods that use signatures, in the order of the sources' options.
        accept_fractions : bool
            Take scores between right and wrong where the sources have none in the task, such as
            means of several runs of an item. The estimate then carries a warning.

        Returns
        -------
        int
            How many of the items asked of this target are still to be answered.

        Raises
        ------
        AnswersError
            If an item was not asked, a score is out of range, differs from one told before, or is
            a fraction where the sources are right or wrong.
        ScoresError
            If an item is not in the scores.
        """
        options = None
        if probabilities is not None:
            lacking = [item for item in answers if item not in probabilities]
            if lacking:
                raise AnswersError(f"{len(lacking)} answers lack probabilities: {some(lacking)}")
            options = self._book.options([probabilities[item] for item in answers])
        try:
            given = [float(score) for score in answers.values()]
        except (TypeError, ValueError) as error:
            raise AnswersError(f"{target!r}: a score is not a number: {error}") from error
        unit = self.scores.scale.to_unit(np.array([given]))
        given_answers = Answers(self.scores.positions(answers), unit, options)
        return self._tell(target, given_answers, accept_fractions=accept_fractions)

    def tell_table(
        self,
        table: Scores,
        target: str | None = None,
        *,
        accept_prompts: bool = False,
        accept_fractions: bool = False,
    ) -> Taken:
        """Take answers from a table of scores, such as one read from a harness's log.

        Parameters
        ----------
        table : Scores
            Item ids as in the sources.
        target : str, optional
            Take only this target. The table's only model is it, whatever its name there.
        accept_prompts : bool
            Take answers although their prompts or settings differ from those of the sources;
            estimates will warn of it. Compared is what the logs of both record.
        accept_fractions : bool
            As in `tell`.

        Returns
        -------
        Taken
            How many answers were new, which items and models of the table were not used, and
            notes on prompts and settings.

        Raises
        ------
        AnswersError
            If the answers are to other prompts or settings than those of the sources, or do not
            fit what was asked.
        """
        if table.scale != self.scores.scale:
            raise AnswersError(
                f"the answers are on the scale {table.scale}, the sources on {self.scores.scale}",
                hint="read the answers with the scale of the sources",
            )
        taken, asked_of_any = 0, set[str]()
        matched = match_models(table, self.targets, target)
        compared = self._compare(table, matched)
        if compared.differences and not accept_prompts:
            raise AnswersError(
                "the answers are to other prompts or settings than the sources': "
                + "; ".join(compared.differences),
                hint="run the items as the sources were run; to take these answers all the same, "
                "use --accept-prompts (in Python accept_prompts=True)",
            )
        for name, row in matched.items():
            wanted = self._wanted(name)
            answers = self._book.from_table(table, row, wanted)
            known = self._book.answered(name)
            taken += sum(at not in known for at in answers.items.tolist())
            self._tell(
                name,
                answers,
                accept_fractions=accept_fractions,
                differences=compared.differences,
            )
            asked_of_any.update(self.scores.item_ids[wanted])
        rows = set(matched.values())
        return Taken(
            taken,
            [item for item in table.item_ids if item not in asked_of_any],
            [model for row, model in enumerate(table.model_ids) if row not in rows],
            (*compared.differences, *compared.notes),
        )

    def _compare(self, table: Scores, matched: Mapping[str, int]) -> Comparison:
        """Compare the prompts and settings of a table's answers with those of the sources."""
        used: dict[str, None] = {}
        for name, row in matched.items():
            answers = self._book.from_table(table, row, self._wanted(name))
            used |= dict.fromkeys(self.scores.item_ids[answers.items].tolist())
        return compare_conditions(self.scores, table, used)

    def _wanted(self, target: str) -> list[int]:
        """Positions that may be told: those asked for now, and those answered before."""
        if target not in self.targets:
            raise AnswersError(
                f"{target!r} is not a target", hint=f"the targets are {some(self.targets)}"
            )
        asked = self._session.ask().get(target, np.empty(0, dtype=np.intp))
        return [*asked.tolist(), *self._book.answered(target)]

    def _tell(
        self,
        target: str,
        answers: Answers,
        *,
        accept_fractions: bool,
        differences: tuple[str, ...] = (),
    ) -> int:
        wanted = self._wanted(target)
        self._book.check(target, answers, wanted, accept_fractions=accept_fractions)
        if len(answers.items):
            told = self._book.to_record(target, answers)
            told = told.model_copy(update={"differences": differences})
            if self._journal is not None:
                self._journal.append(told)
            self._tells.append(told)
        with one_thread():
            return self._take(target, answers)

    def _take(self, target: str, answers: Answers) -> int:
        """Note answers; hand them to the method once all that it asked for are there."""
        self._book.add(target, answers)
        asked = self._session.ask().get(target)
        if asked is None:
            if isinstance(self._session, StaticSession):  # now perhaps with option probabilities
                items = self.scores.positions(self._session.subset.items)
                self._session.tell(target, self._book.of(target, items))
            return 0
        self._pass_on()
        asked = self._session.ask().get(target)
        return 0 if asked is None else self._left(target, asked)

    def _left(self, target: str, asked: IntArray) -> int:
        answered = self._book.answered(target)
        return sum(at not in answered for at in asked.tolist())

    def _pass_on(self) -> None:
        """Hand over what is complete; a method may then ask for items answered before."""
        while complete := {
            target: asked
            for target, asked in self._session.ask().items()
            if len(asked) and self._left(target, asked) == 0
        }:
            for target, asked in complete.items():
                self._session.tell(target, self._book.of(target, asked))

    # -- estimate ----------------------------------------------------------------------------

    def estimate(
        self, level: float = 0.9, targets: Sequence[str] | None = None
    ) -> dict[str, Estimate]:
        """Estimate the full score of targets that have answered all that was asked.

        Parameters
        ----------
        level : float
            Stated coverage of the interval.
        targets : sequence of str, optional
            All by default.

        Raises
        ------
        EvaluationError
            If a target has items left to answer.
        """
        check_level(level)
        names = list(self.targets if targets is None else targets)
        for name in names:
            self._wanted(name)
        check_answered(names, self.ask(), self._session.ask())
        if not names:
            return {}
        with one_thread():
            said = self._session.predict(names, tasks=True)
        if said.tasks is None:
            raise EvaluationError(f"{self.provenance.method} predicted no task scores")
        past = past_scores(self.scores)
        effect = sampling_effect(self.scores, self.provenance.budget)
        of_targets = []
        for row, name in enumerate(names):
            answered = self._book.answered(name)
            at, answers = np.array(list(answered), dtype=np.intp), np.array(list(answered.values()))
            outside = said.outside is not None and bool(said.outside[row])
            score = bound_score(float(said.scores[row]), self.scores, at, answers)
            notes = (*said.notes, *self._book.notes(name), *self._accepted(name))
            of_targets.append(Said(name, score, said.tasks[row], outside, notes, at, answers))
        judged = self.error_model.judge(
            np.array([one.score for one in of_targets]),
            [one.items for one in of_targets],
            [one.answers for one in of_targets],
            level,
        )
        general = self.warnings()
        return {
            one.target: make_estimate(
                one,
                self.scores,
                how_sure,
                level,
                self.provenance,
                effect,
                past,
                [*([self._beyond] if how_sure.is_beyond else []), *general],
            )
            for one, how_sure in zip(of_targets, judged, strict=True)
        }

    def warnings(self) -> list[str]:
        """Return what to know of the method on these sources, before any target is run.

        The method is repeated on parts of the sources for it, which can take as long as 20 runs
        of the method; `estimate` uses the same.
        """
        return self.error_model.warn(self._span)

    def _accepted(self, target: str) -> list[str]:
        """Return warnings of answers that were taken although they were asked otherwise."""
        told = [said for one in self._tells if one.target == target for said in one.differences]
        return [
            f"accepted answers to other prompts or settings than the sources': {said}"
            for said in dict.fromkeys(told)
        ]

    @cached_property
    def error_model(self) -> ErrorModel:
        """What is known of the method's errors on the sources."""
        made = self.provenance
        folder = None if self._journal is None else self._journal.folder
        return ErrorModel(self.method, self.scores, made.budget, made.seed, folder=folder)

    @property
    def _span(self) -> float:
        return self.scores.scale.high - self.scores.scale.low

    @cached_property
    def _beyond(self) -> str:
        return self.error_model.beyond_warning(self.provenance.method, self._span)
