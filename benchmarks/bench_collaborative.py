"""Time of two-stage collaborative filtering beside a plain transcription of its equations.

    python benchmarks/bench_collaborative.py [--quick] [--budget 0.1]

Simulated answers of 400 models (--quick: 100) in 57 tasks of 100 to 1,534 items, 14,042 in all
(--quick: a tenth), one target, a tenth of the items. Both give the same expected score of every
item; a ratio above 1 means that ours is faster. Then ours alone, against a limit of one second,
with more similar tasks, where the exact transport is most of the time. Without --quick also a whole
estimate with its interval, beside the products of items over the sources.
"""

import argparse
import time

import numpy as np

from fewbench._threads import one_thread
from fewbench.algorithms.sampling import task_sizes
from fewbench.methods import Answers
from fewbench.scores import Scores
from fewbench_papers.collaborative.collaborative import Collaborative
from plain_collaborative import predict, select
from whole_estimate import show, table

LIMIT = 1.0
HELD_OUT, LOOKS, LEARNED = 60, 5, 4000  # sources judged, how often, and items, for an interval


def products(sources: Scores) -> float:
    """Seconds of all products of a task's items over the sources, as often as an interval asks."""
    columns = [sources.values[:, sources.task_of == task] for task in range(len(sources.tasks))]
    started = time.process_time()
    for _ in range(HELD_OUT * LOOKS):
        for values in columns:
            part = values[:, : -(-values.shape[1] * LEARNED // sources.n_items)]
            part.T @ part
    return time.process_time() - started


def ours(method: Collaborative, sources: Scores, target: Scores, budget: int):  # type: ignore[no-untyped-def]
    """Expected scores, and seconds to start, to select and to predict."""
    clock = [time.perf_counter()]
    session = method.start(sources, budget, 0, target.model_ids)
    clock.append(time.perf_counter())
    while wanted := session.ask():
        for name, items in wanted.items():
            session.tell(name, Answers(items, target.values[:, items]))
    clock.append(time.perf_counter())
    said = session.predict(target.model_ids).items
    clock.append(time.perf_counter())
    return said[0], np.diff(clock)


def plain(method: Collaborative, sources: Scores, target: Scores, budget: int):  # type: ignore[no-untyped-def]
    """Expected scores, and seconds to select and to predict."""
    of = [np.flatnonzero(sources.task_of == task) for task in range(len(sources.tasks))]
    tasks = [sources.values[:, items] for items in of]
    truths = [target.values[0, items] for items in of]
    rng = np.random.default_rng(0)
    priority, turn = rng.permutation(sources.n_items), rng.permutation(sources.n_models)
    clock = [time.perf_counter()]
    sizes = task_sizes(budget, np.array([len(items) for items in of]), method.minimum)
    chosen = [
        select(tasks[i], truths[i], int(sizes[i]), method, priority[of[i]], turn)
        for i in range(len(of))
    ]
    clock.append(time.perf_counter())
    said = np.empty(sources.n_items)
    for i, items in enumerate(of):
        said[items] = predict(tasks, truths, chosen, i, method, binary=True, turn=turn)
    clock.append(time.perf_counter())
    return said, np.diff(clock)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--budget", type=float, default=0.1)
    given = parser.parse_args()
    whole = table(*((101, 0.1) if given.quick else (401, 1.0)))
    rows = np.arange(whole.n_models)
    sources, target = whole.take(models=rows[1:]), whole.take(models=rows[:1])
    budget = round(given.budget * sources.n_items)
    print(f"{sources.n_models} sources, {sources.n_items} items, {budget} asked, one core")
    ours(Collaborative(), sources, target, budget)  # so that imports are not timed
    for method in (Collaborative(), Collaborative(transport=False)):
        said, (start, chose, predicted) = ours(method, sources, target, budget)
        expected, (slow_chose, slow_predicted) = plain(method, sources, target, budget)
        assert np.allclose(said, expected, atol=1e-9, rtol=0), "not the same result"
        print(f"\n{method.describe()}: the same expected scores")
        print(f"  start (once for all targets)  {start:8.3f} s")
        print(f"  select   {chose:8.3f} s   plain {slow_chose:8.2f} s  × {slow_chose / chose:6.1f}")
        print(
            f"  predict  {predicted:8.3f} s   plain {slow_predicted:8.2f} s"
            f"  × {slow_predicted / predicted:6.1f}"
        )
    print("\nours, by how many answered items at most are transported from")
    for most in (0, 100, 200, 400, 800):
        method = Collaborative(most_items=most)
        _, (_, chose, predicted) = ours(method, sources, target, budget)
        took = chose + predicted
        print(f"  {most:3}   {took:7.3f} s, {took / LIMIT:5.2f} of the limit")
    if not given.quick:
        seconds, least = show("collaborative", "mmlu", 20.0), products(sources)
        print(f"  {seconds / least:.1f} × its items × sources products, {least:.1f} s")


if __name__ == "__main__":
    with one_thread():
        main()
