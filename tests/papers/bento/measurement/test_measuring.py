"""Asking: nothing twice, limits kept, and nothing lost when the model fails or the run ends."""

import math
import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from fewbench.errors import ModelError, RunError
from fewbench.runners.questions import Question
from fewbench_papers.bento.measurement.answers import TOO_LONG
from fewbench_papers.bento.measurement.asking import Asker, longest
from fewbench_papers.bento.measurement.cost import Limits, Prices


@pytest.fixture
def truth(design, fake, measured):
    """The answers of a run in which nothing went wrong."""
    return lambda made: measured(made, fake(), "truth")[0].values


@pytest.mark.parametrize("metric", ["accuracy", "loss", "exact-match"])
@pytest.mark.parametrize("batch", [1, 5, 64])
def test_everything_is_asked_once_in_the_order_of_the_design(design, fake, measured, metric, batch):
    made, model, seen = design(metric=metric), fake(), []
    progress = lambda *numbers: seen.append(numbers)  # noqa: E731
    answers, run = measured(made, model, batch=batch, progress=progress)
    assert model.asked == [made.prompt(request) for request in made.requests()]
    assert max(model.calls) <= batch * (3 if metric == "accuracy" else 1)
    assert answers.complete
    assert run.asked == len(made)
    assert run.stopped is None
    assert run.estimated == 0
    assert seen[-1] == (len(made), len(made))
    assert len(seen) == math.ceil(len(made) / batch)


def test_a_batch_that_fails_is_asked_one_by_one(design, fake, measured, truth):
    made = design()
    model = fake(coming=[None, RuntimeError("out of memory"), None])
    answers, run = measured(made, model, batch=10)
    np.testing.assert_array_equal(answers.values, truth(made))
    assert model.calls[:4] == [30, 30, 3, 3]
    assert run.asked == len(made)


def test_a_model_that_fails_on_all_ends_it_and_keeps_what_came(
    design, fake, measured, kept, tmp_path
):
    made = design()
    model = fake(coming=[None], always=OSError("the server is on fire"))
    with pytest.raises(ModelError, match=r"question '\d+' failed: OSError") as e:
        measured(made, model, batch=7)
    assert f"7 of {len(made)} answers are kept" in e.value.hint
    assert "pass --partial" in e.value.hint
    assert len(model.calls) == 1 + 1 + 3
    assert kept(tmp_path / "ict", made).n_done == 7
    answers, run = measured(made, fake())
    assert answers.complete
    assert run.asked == len(made) - 7


def test_one_bad_prompt_does_not_keep_the_others_from_being_asked(design, fake, measured):
    made = design()
    bad = {made.prompt(made.request(5)), made.prompt(made.request(9))}
    with pytest.raises(ModelError, match="1 more") as e:
        measured(made, fake(bad=bad), batch=4)
    assert f"{len(made) - 2} of {len(made)} answers are kept" in e.value.hint
    answers, run = measured(made, fake())
    assert answers.complete
    assert run.asked == 2


@pytest.mark.parametrize("metric", ["accuracy", "loss"])
def test_a_model_without_log_probabilities_names_another_metric(design, fake, measured, metric):
    class Chat(fake):
        def loglikelihood(self, requests):
            raise NotImplementedError("Loglikelihood is not supported for chat completions")

    class NoEcho(fake):
        def loglikelihood(self, requests):
            return [(0.0, True)] * len(requests)

    class Refuses(fake):
        def loglikelihood(self, requests):
            raise TypeError("'NoneType' object is not subscriptable")

    made = design(metric=metric)
    for kind, said in (
        (Chat, "no log-probabilities"),
        (NoEcho, "are 0"),
        (Refuses, "NoneType"),
    ):
        with pytest.raises(ModelError, match=said) as error:
            measured(made, kind(), batch=8)
        assert "--metric exact-match" in error.value.hint
    assert measured(design(metric="exact-match"), Chat(), "written")[0].complete


def test_an_answer_that_is_certain_among_others_is_an_answer(design, fake, measured):
    class Sure(fake):
        def loglikelihood(self, requests):
            (_, first), *rest = super().loglikelihood(requests)
            return [(0.0, first), *rest]

    assert measured(design(), Sure(), batch=8)[0].complete


def test_a_loss_needs_a_tokenizer(design, fake, measured):
    with pytest.raises(RunError, check=lambda error: error.kind == "unsupported"):
        measured(design(metric="loss"), fake(tokenizer=None))


def test_a_limit_of_tokens_stops_it_and_the_next_run_goes_on(design, fake, measured, truth):
    made = design()
    answers, run = measured(made, fake(), limits=Limits(tokens=8000), batch=4)
    used = answers.prompt + answers.completion
    most = max(len(made.prompt(r)) for r in made.requests()) + 2
    assert 8000 <= used <= 8000 + 4 * 3 * most
    assert run.stopped == f"the limit of 8,000 tokens is reached ({used:,} used)"
    assert not answers.complete
    again, run = measured(made, fake(), limits=Limits(tokens=8000))
    assert run.asked == 0  # the tokens of the first run count
    assert again.n_done == answers.n_done
    model = fake()
    whole, run = measured(made, model)
    assert run.asked == len(model.asked) == len(made) - answers.n_done
    np.testing.assert_array_equal(whole.values, truth(made))


def test_a_limit_that_the_last_answer_reaches_stops_nothing(design, fake, measured):
    made = design()
    used = measured(made, fake(), "all")[0]
    limits = Limits(tokens=used.prompt + used.completion)
    answers, run = measured(made, fake(), limits=limits)
    assert answers.complete
    assert run.stopped is None


def test_tokens_are_counted_or_estimated(design, fake, measured):
    made = design()
    prompts = [made.prompt(request) for request in made.requests()]
    counted = [len(prompt) for prompt in prompts]
    answers, _ = measured(made, fake())
    assert (answers.prompt, answers.completion) == (3 * sum(counted), 3 * len(made))
    answers, _ = measured(made, fake(), "one", kind="hf")
    assert (answers.prompt, answers.completion) == (sum(counted), len(made))
    answers, run = measured(made, fake(tokenizer=None), "unknown", kind="hf")
    assert answers.prompt == sum(round(len(prompt) / 4) for prompt in prompts)
    assert run.estimated == run.asked


def test_a_limit_of_money(design, fake, measured):
    prices = Prices(1000.0, 2000.0)
    answers, run = measured(design(), fake(), limits=Limits(money=6, prices=prices), batch=1)
    spent = (1000 * answers.prompt + 2000 * answers.completion) / 1e6
    assert 6 <= spent < 7
    assert "limit of 6.00 is reached" in run.stopped
    with pytest.raises(RunError, check=lambda error: error.kind == "missing"):
        Limits(money=1.0)


@pytest.mark.parametrize("metric", ["accuracy", "loss", "exact-match"])
def test_prompts_that_do_not_fit_are_not_asked(design, fake, measured, task, metric):
    tasks = [task("a"), task("b", text="{name} {at}" + 40 * "?")]
    made = design(tasks=tasks, metric=metric)
    lengths = [len(made.prompt(r)) for r in made.requests()]
    most = sum(lengths) // len(lengths) + {"exact-match": 16}.get(metric, 2)
    model = fake(max_length=most)
    answers, _ = measured(made, model)
    assert 0 < answers.count(TOO_LONG) == np.isnan(answers.values).sum() < len(made)
    assert len(model.asked) == len(made) - answers.count(TOO_LONG)
    again = fake()
    _, run = measured(made, again)
    assert (run.asked, again.asked) == (0, [])


def test_ctrl_c_leaves_files_whole(design, fake, measured, kept, tmp_path):
    class Slow(fake):
        def loglikelihood(self, requests):
            time.sleep(0.05)
            return super().loglikelihood(requests)

    made, model = design(questions=None), Slow()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        measured(made, model, batch=3)
    timer.join()
    done = kept(tmp_path / "ict", made).n_done
    assert 0 < done == len(model.asked)
    answers, run = measured(made, fake())
    assert answers.complete
    assert run.asked == len(made) - done


def test_what_lm_eval_caches_is_not_asked_again(design, fake, measured, tmp_path):
    from lm_eval.api.model import CachingLM

    class Cached(fake):
        def set_cache_hook(self, hook):
            pass

    made, model = design(), Cached()
    first, _ = measured(made, CachingLM(model, str(tmp_path / "cache.db")))
    n_asked = len(model.asked)
    again, _ = measured(made, CachingLM(model, str(tmp_path / "cache.db")), "other")
    assert len(model.asked) == n_asked == len(made)
    np.testing.assert_array_equal(first.values, again.values)


def one(made, said, chat=False):
    """The answer to the first question of a model that says one thing, and what it was given."""
    pytest.importorskip("lm_eval")
    given = []
    model = SimpleNamespace(tokenizer="", tok_encode=str.split)
    model.apply_chat_template = lambda messages: f"<{messages[0]['content']}>"
    model.loglikelihood = lambda _: [(value, False) for value in said]
    model.generate_until = lambda requests: given.extend(r.args for r in requests) or [said]
    (answer,) = Asker(model, made, chat).ask([made.request(0)])
    return answer, given


def test_accuracy_of_an_answer(design):
    made = design()
    right = made.question(made.request(0)).answer
    values = [-2.0] * 3
    values[right] = -1.0
    assert one(made, values)[0].value == 1.0
    assert one(made, values)[0].said == "ABC"[right]
    values[right] = -3.0
    assert one(made, values)[0].value == 0.0
    assert one(made, [-1.0] * 3)[0].value == 1 / 3
    assert one(made, [-1.0] * 3)[0].said == "A,B,C"
    nothing = one(made, [-math.inf] * 3)[0]
    assert (nothing.value, nothing.said) == (0.0, None)
    listed = [-math.inf] * 3
    listed[right] = -9.0
    assert one(made, listed)[0].value == 1.0
    for broken in ([math.nan, -1.0, -1.0], [-1.0, -2.0]):
        with pytest.raises(ValueError, match=r"NaN|2 answers to 3"):
            one(made, broken)


def test_loss_of_an_answer(design, task):
    tasks = [task("a", options=()), task("b", options=())]  # answers of two words
    made = design(tasks=tasks, metric="loss")
    assert one(made, (-3.0,))[0].value == -1.5
    for broken in (-math.inf, math.nan, 0.1):
        with pytest.raises(ValueError, match="log-probability"):
            one(made, (broken,))


def test_exact_match_of_an_answer(design, task):
    made = design(tasks=[task("a", options=()), task("b", options=())], metric="exact-match")
    answer = made.question(made.request(0)).answer
    assert one(made, f"\n {answer.upper()}  ")[0].value == 1.0
    assert one(made, f"{answer}\n\nAnd so on")[0].value == 1.0
    assert one(made, answer.replace(" ", "\n"))[0].value == 1.0
    assert one(made, f"{answer}.")[0].value == 0.0
    assert one(made, "")[0].value == 0.0
    found, given = one(made, "anything")
    assert found.said == "anything"
    prompt = made.prompt(made.request(0))
    settings = {"until": ["\n\n"], "max_gen_toks": 16, "do_sample": False}
    assert given == [(prompt, settings)]
    found, given = one(made, f"\n\n{answer}\n\nBye", chat=True)
    assert found.value == 1.0
    assert given == [(f"<{prompt}>", settings | {"until": []})]


def test_answers_may_be_as_long_as_the_longest_right_one():
    question = Question(id="1", text="?", answer="short", also=("x" * 40,))
    assert longest(question) == 40
    assert longest(question.model_copy(update={"also": ("x" * 4000,)})) == 512
