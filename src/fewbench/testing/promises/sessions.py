"""What a session keeps: it stands alone, takes targets in any order, and can be resumed."""

from copy import deepcopy
from pathlib import Path

import numpy as np

from fewbench.evaluation import Evaluation
from fewbench.methods import Method
from fewbench.testing.playing import CLOSE, answers_of, assert_same, reordered
from fewbench.testing.promises.base import Promises, answer_all, check_estimates


class Sessions(Promises):
    """Sessions stand alone, take targets in any order, and can be stopped and resumed."""

    def test_sessions_do_not_disturb_each_other(self, method: Method) -> None:
        """Sessions of one method side by side ask and predict as each would alone."""
        sources, targets = self._tables()
        name, others = targets.model_ids[0], targets.model_ids[1:]
        alone = self._play(method, sources, targets.take(models=[0]), 6)
        one = method.start(sources, 6, 0, [name])
        two = method.start(sources, 6, 1, others)
        asked: list[int] = []
        while wanted := one.ask():
            asked.extend(wanted[name].tolist())
            for other, items in two.ask().items():
                two.tell(other, answers_of(targets, targets.model_ids.index(other), items))
            one.tell(name, answers_of(targets, 0, wanted[name]))
        assert asked == alone.asked[name].tolist()
        np.testing.assert_allclose(
            one.predict([name]).scores, alone.prediction.scores, atol=CLOSE, rtol=0
        )

    def test_order_of_targets_does_not_matter(self, method: Method) -> None:
        """Targets named and told in another order get the same."""
        sources, targets = self._tables()
        order = np.arange(targets.n_models)[::-1]
        forth = self._play(method, sources, targets, 8, tasks=True)
        back = self._play(method, sources, targets.take(models=order), 8, tasks=True)
        assert_same(forth, reordered(back, order))
        last_first = self._play(method, sources, targets, 8, tasks=True, one_by_one=True)
        assert_same(forth, last_first)

    def test_answers_in_parts_and_an_evaluation_resumed(
        self, method: Method, tmp_path: Path
    ) -> None:
        """Stopped in the middle of a target's answers and opened again: the same predictions."""
        sources, targets = self._tables()
        names = targets.model_ids
        whole = self._play(method, sources, targets, 8, tasks=True)
        begun = Evaluation(sources, method, 8, names)
        begun.save(tmp_path)
        asked = begun.ask()[names[0]]
        first = targets.positions(asked[: len(asked) // 2])
        if len(first):  # a method that asks one item at a time is stopped between two
            begun.tell_table(targets.take(models=[0], items=first), names[0])
        resumed = Evaluation.open(tmp_path, sources, method)
        assert resumed.ask()[names[0]] == asked[len(asked) // 2 :]
        assert resumed.ask() == begun.ask()
        run = answer_all(resumed, targets)
        run[names[0]] = asked[: len(first)] + run[names[0]]
        for name in names:
            assert set(run[name]) == set(sources.item_ids[whole.asked[name]])
        again = resumed._session.predict(names, tasks=True)
        np.testing.assert_allclose(again.scores, whole.prediction.scores, atol=CLOSE, rtol=0)
        assert again.tasks is not None
        assert whole.prediction.tasks is not None
        np.testing.assert_allclose(again.tasks, whole.prediction.tasks, atol=CLOSE, rtol=0)
        if self.estimates:
            check_estimates(resumed, targets, run)

    def test_goes_on_from_the_record_of_another_session(self, method: Method) -> None:
        """A session asks and predicts from its record alone, at every step."""
        sources, targets = self._tables()
        names = targets.model_ids
        first = method.start(sources, 8, 0, names)
        wanted = {"": np.arange(0)}
        while wanted:
            other = method.start(sources, 8, 0, names)
            other.record = deepcopy(first.record)  # as it was before the next choice
            wanted, again = first.ask(), other.ask()
            assert list(again) == list(wanted), "another session asks other targets"
            for name, items in wanted.items():
                assert np.array_equal(items, again[name]), "another session asks other items"
                if len(items):
                    first.tell(name, answers_of(targets, names.index(name), items))
        np.testing.assert_allclose(
            other.predict(names).scores,
            first.predict(names).scores,
            atol=CLOSE,
            rtol=0,
            err_msg="another session predicts other scores",
        )
