"""Asking: nothing twice, failures tried again, limits kept, and nothing lost when it ends."""

import asyncio
import math
import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import ModelError, RunError
from fewbench.runners.asking import Limits, Patience, Prices
from fewbench.runners.models.model import Chosen, NoReply, Read, TryAgain, Usage, Written
from fewbench.runners.questions import Question
from fewbench.runners.scoring import longest
from fewbench.transfer.answers import NOT_LISTED, TOO_LONG
from fewbench.transfer.journal import read
from fewbench.transfer.measuring import ask

FAST = Patience(first=0.001, longest=0.002)


@pytest.fixture
def truth(design, fake, measured):
    """The answers of a run in which nothing went wrong."""
    return lambda made: measured(made, fake(), "truth")[0].values


@pytest.mark.parametrize("metric", ["accuracy", "loss", "exact-match"])
def test_everything_is_asked_once_in_the_order_of_the_design(design, fake, measured, metric):
    made, model = design(metric=metric), fake()
    answers, run = measured(made, model, concurrency=1)
    assert model.asked == [made.prompt(request) for request in made.requests()]
    assert answers.complete
    assert run.asked == run.requests == len(made)
    assert run.retries == 0
    assert run.stopped is None
    assert model.closed


def test_requests_under_way_are_bounded_and_many_make_the_same_answers(
    design, fake, measured, truth
):
    made, model = design(), fake(delay=0.001)
    answers, _ = measured(made, model, concurrency=5)
    assert model.most_open == 5
    np.testing.assert_array_equal(answers.values, truth(made))


def test_failures_are_tried_again_and_change_nothing(design, fake, measured, truth):
    made, rng = design(questions=None), random.Random(1)
    troubles = [TryAgain("not now") if rng.random() < 0.3 else None for _ in range(200)]
    model = fake(coming=list(troubles))
    answers, run = measured(made, model, patience=FAST)
    np.testing.assert_array_equal(answers.values, truth(made))
    assert run.retries == sum(trouble is not None for trouble in troubles)
    assert set(Counter(model.answered).values()) == {1}


def test_after_enough_failures_it_gives_up_and_keeps_what_came(design, fake, measured, tmp_path):
    made = design()
    model = fake(coming=[None] * 7, always=TryAgain("the server is on fire"))
    with pytest.raises(ModelError, match=r"3 times in a row, .*: the server is on fire") as e:
        measured(made, model, patience=Patience(3, 0.001, 0.001), concurrency=2)
    assert f"7 of {len(made)} answers are kept" in e.value.hint
    assert read(tmp_path / "ict", made).n_done == 7
    assert model.closed
    answers, run = measured(made, fake())
    assert answers.complete
    assert run.asked == len(made) - 7


def test_before_any_answer_one_request_s_failures_are_enough(design, fake, measured):
    model = fake(always=TryAgain("dead"))
    with pytest.raises(ModelError, match=r"3 times in a row; .*: dead"):
        measured(design(), model, patience=Patience(3, 0.001, 0.001), concurrency=1)
    assert len(model.asked) == 3


@pytest.mark.parametrize("concurrency", [1, 4])
def test_one_bad_prompt_does_not_keep_the_others_from_being_asked(
    design, fake, measured, concurrency
):
    made = design()
    bad = made.prompt(made.request(5))

    class Choosy(fake):
        async def choose(self, prompt, options):
            chosen = await super().choose(prompt, options)
            if prompt == bad:
                raise TryAgain("this one breaks it")
            return chosen

    patience, model = Patience(3, 0.001, 0.001), Choosy()
    with pytest.raises(ModelError, match=r"3 times in a row, for the second time; .*: this one"):
        measured(made, model, patience=patience, concurrency=concurrency)
    assert model.asked.count(bad) == 6
    answers, run = measured(made, fake())
    assert answers.complete
    assert run.asked == 1


def test_bad_luck_with_one_request_ends_nothing(design, fake, measured, truth):
    made = design()
    model = fake(coming=[None, *[TryAgain("busy")] * 5])
    answers, run = measured(made, model, patience=Patience(3, 0.001, 0.001), concurrency=1)
    np.testing.assert_array_equal(answers.values, truth(made))
    assert run.retries == 5
    first, second, third, *others = [made.prompt(r) for r in made.requests()]
    assert model.answered == [first, third, *others, second]


def test_a_wait_that_the_server_asks_for_is_no_silence(design, fake, measured):
    model = fake(coming=[None, *[TryAgain("slow down", after=0.3)] * 3])
    patience = Patience(first=0.001, longest=0.001, silence=0.1)
    answers, _ = measured(design(), model, patience=patience, concurrency=2)
    assert answers.complete


def test_when_nothing_is_answered_for_a_while_it_gives_up(design, fake, measured):
    patience = Patience(tries=10_000, first=0.001, longest=0.01, silence=0.3)
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"nothing was answered in .* seconds .*: dead"):
        measured(design(), fake(always=TryAgain("dead")), patience=patience)
    assert time.monotonic() - started < 5


def test_failures_between_answers_are_no_silence(design, fake, measured):
    made = design(seeds=1, questions=3)
    troubles = [
        trouble for _ in range(len(made)) for trouble in (TryAgain("a"), TryAgain("b"), None)
    ]
    patience = Patience(first=0.001, longest=0.001, silence=0.3)
    started = time.monotonic()
    answers, _ = measured(made, fake(coming=troubles, delay=0.01), patience=patience, concurrency=1)
    assert time.monotonic() - started > 0.6
    assert answers.complete


def test_a_model_that_cannot_be_asked_ends_it_at_once(design, fake, measured):
    model = fake(coming=[None, None, ModelError("no such model")])
    with pytest.raises(ModelError, match="no such model"):
        measured(design(), model, concurrency=1)
    assert len(model.asked) == 3


def test_what_is_under_way_when_it_fails_is_kept(design, fake, measured, tmp_path):
    class Late(fake):
        async def choose(self, prompt, options):
            if len(self.asked) == 3:
                raise ModelError("no such model")
            chosen = await super().choose(prompt, options)
            await asyncio.sleep(0.1)
            return chosen

    made = design()
    with pytest.raises(ModelError, match="no such model"):
        measured(made, Late(), concurrency=4)
    assert read(tmp_path / "ict", made).n_done == 3


def test_a_long_wait_elsewhere_does_not_hold_up_the_end(design, fake, measured):
    model = fake(coming=[TryAgain("busy"), TryAgain("busy"), ModelError("gone")])
    started = time.monotonic()
    with pytest.raises(ModelError, match="gone"):
        measured(design(), model, concurrency=3, patience=Patience(first=30.0))
    assert time.monotonic() - started < 3


def test_a_wait_that_the_server_asks_for_is_kept_by_all(design, fake, measured):
    made, started = design(), time.monotonic()
    model = fake(coming=[TryAgain("slow down", after=0.3)])
    measured(made, model, patience=FAST, concurrency=1)
    assert time.monotonic() - started >= 0.3
    at = []

    class Clocked(fake):
        async def choose(self, prompt, options):
            at.append(time.monotonic())
            return await super().choose(prompt, options)

    model = Clocked(coming=[TryAgain("slow down", after=0.3)])
    measured(made, model, "other", patience=FAST, concurrency=2)
    late = [moment for moment in at[2:] if moment - at[0] < 0.3]
    assert len(late) <= 1  # what was already under way


@pytest.mark.parametrize("failed", [1, 2, 5, 50])
def test_waits_grow_and_are_left_to_chance(failed):
    waits = {Patience(first=0.5, longest=30.0).wait(failed) for _ in range(50)}
    most = min(0.5 * 2 ** (failed - 1), 30.0)
    assert len(waits) > 1
    assert all(most / 2 <= wait <= most for wait in waits)


def test_a_rate_is_kept(design, fake, measured):
    made = design(seeds=1, questions=2, columns=1)
    started = time.monotonic()
    measured(made, fake(), rate=60 * 20.0)
    assert len(made) == 6
    assert time.monotonic() - started >= 5 / 20


def test_a_limit_of_tokens_stops_it_and_the_next_run_goes_on(design, fake, measured, truth):
    made = design()
    answers, run = measured(made, fake(), limits=Limits(tokens=500), concurrency=4)
    used = answers.prompt + answers.completion
    most = max(len(made.prompt(r)) for r in made.requests()) // 4 + 1
    assert 500 <= used <= 500 + 4 * most
    assert f"limit of 500 tokens is reached ({used} used), including " in run.stopped
    assert run.stopped.endswith("requests already sent")
    assert not answers.complete
    again, run = measured(made, fake(), limits=Limits(tokens=500))
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
    answers, run = measured(made, fake(), limits=limits, concurrency=1)
    assert answers.complete
    assert run.stopped is None


def test_a_limit_holds_where_the_server_does_not_say_what_was_used(design, fake, measured):
    class Silent(fake):
        async def choose(self, prompt, options):
            return replace(await super().choose(prompt, options), usage=Usage())

    made = design()
    answers, run = measured(made, Silent(), limits=Limits(tokens=500), concurrency=1)
    assert "limit of 500 tokens" in run.stopped
    prompts = [made.prompt(made.request(at)) for at in range(run.asked)]
    assert answers.prompt == sum(round(len(prompt) / 4) for prompt in prompts)
    assert run.estimated == run.asked == answers.completion


def test_whether_log_probabilities_will_be_asked_for_is_said(design, fake, measured):
    told = []

    class Told(fake):
        async def prepare(self, log_probabilities=True):
            told.append(log_probabilities)
            return {}

    for metric in ("accuracy", "loss", "exact-match"):
        measured(design(metric=metric), Told(), metric)
    assert told == [True, True, False]


def test_what_a_server_tells_otherwise_is_noted(design, fake, measured):
    made = design()
    measured(made, fake(facts={"max_model_len": "10"}), limits=Limits(tokens=500))
    _, run = measured(made, fake(facts={"max_model_len": "20"}))
    assert run.notes == ("the model's context now has room for 20 tokens; it had 10 before",)


def test_a_limit_of_money(design, fake, measured):
    prices = Prices(1000.0, 2000.0)
    answers, run = measured(
        design(), fake(), limits=Limits(money=0.5, prices=prices), concurrency=1
    )
    spent = (1000 * answers.prompt + 2000 * answers.completion) / 1e6
    assert 0.5 <= spent < 0.6
    assert "limit of 0.50 is reached" in run.stopped
    with pytest.raises(RunError, match="needs prices"):
        Limits(money=1.0)


def test_prompts_that_do_not_fit_are_not_asked_again(design, fake, measured):
    made = design()
    lengths = sorted(len(made.prompt(r)) for r in made.requests())
    most = lengths[len(lengths) // 2]
    answers, _ = measured(made, fake(most=most))
    long = sum(length > most for length in lengths)
    assert 0 < long == answers.count(TOO_LONG) == np.isnan(answers.values).sum()
    model = fake()
    _, run = measured(made, model)
    assert run.asked == 0
    assert model.asked == []


def test_ctrl_c_leaves_files_whole(design, fake, measured, tmp_path):
    made = design(questions=None)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    model = fake(delay=0.05)
    with pytest.raises(KeyboardInterrupt):
        measured(made, model, concurrency=3)
    timer.join()
    done = read(tmp_path / "ict", made).n_done
    assert 0 < done == len(model.answered)
    assert model.closed
    answers, run = measured(made, fake())
    assert answers.complete
    assert run.asked == len(made) - done


def test_ctrl_c_ends_it_where_a_loop_runs_already(design, fake, measured):
    made = design(questions=None)
    model = fake(delay=0.2)

    async def cell():
        measured(made, model, concurrency=1)

    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    loop = asyncio.new_event_loop()  # as in a notebook: no handler that turns it into a cancel
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(cell())
    loop.close()
    timer.join()
    assert time.monotonic() - started < len(made) * 0.2 / 2
    assert model.closed


def test_a_full_disk_ends_it_and_loses_nothing_that_was_told(
    design, fake, measured, tmp_path, monkeypatch
):
    made, write, written = design(), os.write, []

    def full(handle, line):
        if line.startswith(b'{"seed"'):
            written.append(line)
            return write(handle, line if len(written) <= 5 else line[:10])
        return write(handle, line)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            measured(made, fake())
    assert read(tmp_path / "ict", made).n_done == 5
    assert measured(made, fake())[0].complete


def test_one_thing_at_a_time_is_refused_where_it_makes_no_sense(design, fake, measured):
    for settings in ({"concurrency": 0}, {"rate": 0.0}, {"rate": math.nan}):
        with pytest.raises(RunError):
            measured(design(), fake(), **settings)
    with pytest.raises(RunError):
        Patience(tries=0)


def test_a_model_that_is_never_reached(design, fake, measured):
    class Gone(fake):
        async def prepare(self, log_probabilities=True):
            self.asked.append("how")
            raise NoReply("no connection")

    model = Gone()
    with pytest.raises(ModelError, match="fake cannot be reached: no connection"):
        measured(design(), model, patience=Patience(first=0.001))
    assert model.closed
    assert len(model.asked) == 4


def test_a_server_that_answers_with_errors_is_not_said_to_be_away(design, fake, measured):
    class Broken(fake):
        async def prepare(self, log_probabilities=True):
            raise TryAgain("500: out of memory", None, 500)

    with pytest.raises(ModelError, match="server of fake answers 500: out of memory") as caught:
        measured(design(), Broken(), patience=Patience(first=0.001))
    assert "is the server up" not in str(caught.value)


def test_the_letters_that_were_chosen_are_kept(design, fake, measured):
    answers, _ = measured(design(), fake(tie=True))
    assert set(answers.values) == {1 / 3}


class Says:
    """A model that says one thing."""

    name = "says"

    def __init__(self, said):
        self.said = said

    async def choose(self, prompt, options):
        return Chosen(tuple(self.said), Usage())

    async def read(self, prompt, continuation):
        self.continuation = continuation
        return Read(*self.said, Usage())

    async def write(self, prompt, stop, most):
        self.stop, self.most = stop, most
        return Written(self.said, Usage())


def one(made, said):
    return asyncio.run(ask(Says(said), made, made.request(0)))


def test_accuracy_of_an_answer(design):
    made = design()
    right = made.question(made.request(0)).answer
    values = [-2.0] * 3
    values[right] = -1.0
    assert one(made, values).value == 1.0
    assert one(made, values).said == "ABC"[right]
    values[right] = -3.0
    assert one(made, values).value == 0.0
    assert one(made, [-1.0] * 3).value == 1 / 3
    assert one(made, [-1.0] * 3).said == "A,B,C"
    nothing = one(made, [-math.inf] * 3)
    assert (nothing.value, nothing.said) == (0.0, None)
    listed = [-math.inf] * 3
    listed[right] = -9.0
    assert one(made, listed).value == 1.0
    for broken in ([math.nan, -1.0, -1.0], [-1.0, -2.0]):
        with pytest.raises(TryAgain):
            one(made, broken)


def test_loss_of_an_answer(design, task):
    made = design(tasks=[task("a", options=()), task("b", options=())], metric="loss")
    assert one(made, (-3.0, 2)).value == -1.5
    for broken in ((-math.inf, 2), (math.nan, 2), (-1.0, 0), (0.1, 1)):
        with pytest.raises(TryAgain, match="log-probability"):
            one(made, broken)


def test_exact_match_of_an_answer(design, task):
    made = design(tasks=[task("a", options=()), task("b", options=())], metric="exact-match")
    answer = made.question(made.request(0)).answer
    assert one(made, f"\n {answer.upper()}  ").value == 1.0
    assert one(made, answer.replace(" ", "\n")).value == 1.0
    assert one(made, f"{answer}.").value == 0.0
    assert one(made, "").value == 0.0
    assert one(made, "anything").said == "anything"
    model = Says("x")
    asyncio.run(ask(model, made, made.request(0)))
    assert model.stop == ["\n\n"]
    assert model.most == 16


def test_answers_may_be_as_long_as_the_longest_right_one():
    question = Question(id="1", text="?", answer="short", also=("x" * 40,))
    assert longest(question) == 40
    assert longest(question.model_copy(update={"also": ("x" * 4000,)})) == 512


def test_options_that_no_one_lists_are_counted(design, fake, measured):
    class Silent(fake):
        async def choose(self, prompt, options):
            return Chosen((-math.inf,) * len(options), Usage())

    made = design()
    answers, _ = measured(made, Silent())
    assert answers.count(NOT_LISTED) == len(made)
    assert set(answers.values) == {0.0}
