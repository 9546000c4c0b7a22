"""Threads and processes at work on one evaluation: every answer that was taken is kept."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fewbench.evaluation import Evaluation
from fewbench.testing import simulate

TABLE = simulate(26, 120, 2, seed=3)
SOURCES = TABLE.take(models=range(24))
NAMES = TABLE.model_ids[24:]
ANSWERS = {name: dict(zip(TABLE.item_ids, row, strict=True)) for name, row in
           zip(NAMES, TABLE.values[24:], strict=True)}  # fmt: skip


def forks(test):
    """Skip a test where there is no fork; Python warns of forks beside threads."""
    skipped = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    return skipped(pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")(test))


def answer(evaluation):
    """Answer what is asked until nothing is, an item at a time; others may do the same."""
    while asked := evaluation.ask():
        for target, items in asked.items():
            for item in items:
                evaluation.tell(target, {item: ANSWERS[target][item]})


def answers_of(evaluation):
    return {name: evaluation.record.answered(name).tolist() for name in NAMES}


@pytest.mark.parametrize("method", ["random", "tailored(probe=5)"])
@pytest.mark.parametrize("is_saved", [False, True])
def test_threads_share_an_evaluation(tmp_path, method, is_saved):
    evaluation = Evaluation(SOURCES, method, 40, NAMES)
    if is_saved:
        evaluation.save(tmp_path)
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(answer, evaluation) for _ in range(7)]:
                while not done.done():
                    if all(map(len, answers_of(evaluation).values())):
                        evaluation.estimate(warn=False)
                done.result()
    finally:
        sys.setswitchinterval(switch)
    assert {len(items) for items in answers_of(evaluation).values()} == {40}
    if is_saved:
        opened = Evaluation.open(tmp_path, SOURCES)
        assert answers_of(opened) == answers_of(evaluation)
        assert opened.estimate() == evaluation.estimate()


@forks
@pytest.mark.parametrize(("n_processes", "n_threads"), [(2, 1), (2, 4)])
def test_processes_and_their_threads_share_a_folder(tmp_path, n_processes, n_threads):
    """Some have an evaluation from before the fork, others one of their own."""
    evaluation = Evaluation(SOURCES, "random", 60, NAMES)
    evaluation.save(tmp_path)
    asked = [(name, item) for name, items in evaluation.ask().items() for item in items]

    def tell(part):
        mine = Evaluation.open(tmp_path, SOURCES) if part % 2 else evaluation
        for name, item in asked[part :: n_processes * n_threads]:
            mine.tell(name, {item: ANSWERS[name][item]})

    children = []
    for process in range(n_processes):
        child = os.fork()
        if not child:
            failed = 1
            try:
                with ThreadPoolExecutor(n_threads) as pool:
                    list(pool.map(tell, range(process * n_threads, (process + 1) * n_threads)))
                failed = 0
            finally:
                os._exit(failed)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * n_processes
    opened = Evaluation.open(tmp_path, SOURCES)
    assert {len(items) for items in answers_of(opened).values()} == {60}
    told = [(entry.target, item) for entry in opened.entries for item in
            getattr(entry, "scores", ()) and entry.items]  # fmt: skip
    assert sorted(told) == sorted(asked)


@forks
def test_a_fork_does_not_inherit_a_lock(tmp_path):
    evaluation = Evaluation(SOURCES, "random", 10, NAMES[:1])
    evaluation.save(tmp_path)
    first, second = evaluation.ask()[NAMES[0]][:2]
    held, free = threading.Event(), threading.Event()

    def hold():
        with evaluation._ledger.alone():
            held.set()
            free.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(30)
    child = os.fork()
    if not child:
        failed = 1
        try:
            evaluation.tell(NAMES[0], {first: 1.0})  # once the parent's thread is done
            failed = 0
        finally:
            os._exit(failed)
    free.set()
    holder.join()
    evaluation.tell(NAMES[0], {second: 1.0})
    assert os.waitpid(child, 0)[1] == 0
    assert len(Evaluation.open(tmp_path, SOURCES).record.answered(NAMES[0])) == 2
