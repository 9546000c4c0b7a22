"""Time of TailoredBench against limits, and beside its published algorithm written plainly.

    python benchmarks/bench_tailored.py [--full]

Simulated answers, so that it runs anywhere: 75 sources and 75 targets on 1,319 items (the paper's
GSM8K) at 30 items, with --full also one target among 400 sources on 14,042 items (MMLU): its own
items, and the whole estimate with its interval, with the memory of its process, beside the sources'
distances between all items once. Limits are processor seconds. The plain one measures all distances
by scipy's cdist, and makes the best of all swaps, one after the other (PAM). It must find the same
native sources, equal distances and medoids as good.
"""

import argparse
import time

import numpy as np
from scipy.spatial.distance import cdist

from fewbench._threads import one_thread
from fewbench.methods import Answers
from fewbench.scores import Scores
from fewbench.testing import simulate
from fewbench.uncertainty.replay import replay
from fewbench_papers.algorithms.clustering.distances import item_distances
from fewbench_papers.algorithms.clustering.kmedoids import kmedoids
from fewbench_papers.tailoredbench.tailored import Tailored, TailoredSession
from whole_estimate import show

FloatArray = IntArray = np.ndarray


def plain_search(distances: FloatArray, anchors: FloatArray, k: int) -> float:
    """Best swaps of the free medoids until the cost falls no more; return the cost."""
    rng = np.random.default_rng(0)
    free = np.setdiff1d(np.arange(len(distances)), anchors)
    medoids = [*anchors, *rng.choice(free, k, replace=False)]
    cost = distances[:, medoids].min(axis=1).sum()
    while True:
        best = (cost, None, None)
        for place in range(len(anchors), len(medoids)):
            rest = distances[:, medoids[:place] + medoids[place + 1 :]].min(axis=1)
            costs = np.minimum(distances, rest[:, None]).sum(axis=0)
            costs[medoids] = np.inf
            if costs.min() < best[0]:
                best = (costs.min(), place, int(costs.argmin()))
        if best[1] is None:
            return float(cost)
        cost = best[0]
        medoids[best[1]] = best[2]


def standardised(rows: FloatArray) -> FloatArray:
    """Columns of mean 0 and variance 1; a constant one becomes 0."""
    deviation = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(deviation > 0, deviation, 1)


def plain_natives(sources: FloatArray, answers: FloatArray) -> IntArray:
    """The sources nearest to a target by their answers to the probe set (Eq. 3-5)."""
    rows = standardised(np.vstack([sources, answers]))
    distances = cdist(rows, rows, "cityblock")
    mean = distances[np.triu_indices(len(rows), 1)].mean()
    within = distances[:, :-1] < mean
    np.fill_diagonal(within, False)
    n = max(1, int(within.sum(axis=1).mean()))
    return np.sort(np.argsort(distances[-1, :-1], kind="stable")[:n])


def beside_plain(session: TailoredSession, sources: FloatArray, answers: FloatArray) -> float:
    """Seconds of the published algorithm from the answers on the probe set, with equal results."""
    probe = session.probe
    started = time.process_time()
    natives = plain_natives(sources[:, probe], answers[probe])
    rows = standardised(sources.T[:, natives])
    distances = cdist(rows, rows, "cityblock")
    cost = plain_search(distances, probe, 20)
    seconds = time.process_time() - started
    (target,) = session.record.targets
    np.testing.assert_array_equal(natives, session.natives_of(target))
    ours = item_distances(sources.T[:, natives], standardise=True)
    np.testing.assert_allclose(ours, distances, rtol=1e-6, atol=1e-6)
    medoids = session.native_set(natives).medoids
    assert abs(distances[:, medoids].min(axis=1).sum() / cost - 1) < 0.02
    return seconds


def first_ask(sources: Scores, target: Scores, budget: int) -> tuple[float, TailoredSession]:
    """Seconds from the answers on the probe set to the items of the target."""
    (name,) = target.model_ids
    session = Tailored().start(sources, budget, 0, [name])
    answers = Answers(session.probe, target.values[:, session.probe])
    started = time.process_time()
    session.tell(name, answers)
    session.ask()
    return time.process_time() - started, session


def whole(sources: Scores) -> None:
    """The whole estimate beside all distances once; the probe set must be that of their matrix."""
    seconds = show("tailored", "equal", 6.0, 0.4)
    started = time.process_time()
    once = item_distances(sources.values.T, standardise=True)
    distances = time.process_time() - started
    print(f"  {seconds / distances:.1f} × the distances of the sources once, {distances:.1f} s")
    probe = Tailored().start(sources, 100, 0, ["new"]).probe
    medoids = kmedoids(once, len(probe), np.random.default_rng([0, 0])).medoids
    np.testing.assert_array_equal(probe, medoids)


def line(what: str, seconds: float, limit: float) -> None:
    print(f"  {what:<52} {seconds:8.3f} s   {seconds / limit:5.2f} of the limit of {limit:g} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the size of MMLU too")
    full = parser.parse_args().full
    table = simulate(150, 1319, 1, seed=1)
    sources, targets = table.take(models=np.arange(75)), table.take(models=np.arange(75, 150))
    replay(Tailored(), sources, targets.take(models=[0]), 30, 0)  # so that imports are not timed
    print("75 sources, 1,319 items, 30 asked, one core")
    started = time.process_time()
    replay(Tailored(), sources, targets, 30, 1)
    line("75 targets together, selection and prediction", time.process_time() - started, 1.5)
    seconds, session = first_ask(sources, targets.take(models=[0]), 30)
    line("one target's items, once the probe set is answered", seconds, 0.05)
    plain = beside_plain(session, sources.values, targets.values[0])
    print(f"  the published algorithm, written plainly, takes {plain / seconds:.0f} × as long")
    if full:
        table = simulate(401, 14042, 57, seed=1)
        rows = np.arange(401)
        print("400 sources, 14,042 items, one core")
        for budget in (30, 100):
            seconds, _ = first_ask(table.take(models=rows[1:]), table.take(models=rows[:1]), budget)
            line(f"one target's items of {budget}", seconds, 1.0)
        whole(table.take(models=rows[1:]))


if __name__ == "__main__":
    with one_thread():
        main()
