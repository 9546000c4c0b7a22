"""Agents with dollars and repeated runs."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit

from .found import COVERED, LOST, WRONG, Found, covers, estimates_of, is_wrong
from .shell import fewbench, folder, run_model

EARLIER, TASKS, RUNS, LIMIT = 12, 80, 3, 60.0
LONG = ("--model", "model", "--item", "item", "--score", "score", "--trials", "mean")


class Agents:
    """Tasks of a benchmark of agents, drawn from many; each agent has a chance of each task."""

    def __init__(self, world: int) -> None:
        self.rng = np.random.default_rng([40, world])
        many = 20_000
        self.difficulty = self.rng.normal(0, 1.5, many)
        self.slope = self.rng.lognormal(0, 0.3, many)
        self.names = [f"task-{at:02d}" for at in range(TASKS)]
        harder = 0.3 * self.difficulty[:TASKS]  # harder tasks cost more
        self.costs = np.exp(np.log(3) + harder + self.rng.normal(0, 0.4, TASKS))

    def agent(self) -> tuple[np.ndarray, float]:
        """Return an agent's chances on the benchmark, and its score over all such tasks."""
        own = self.rng.normal(0, 0.5, len(self.slope))
        chances = expit(self.slope * (self.rng.normal(0, 1) - self.difficulty) + own)
        return chances[:TASKS], float(chances.mean())

    def run(self, chances: np.ndarray) -> np.ndarray:
        """Return the scores of one run."""
        return (self.rng.random(TASKS) < chances) * 1.0

    def lines(
        self, runs: list[np.ndarray], *, with_cost: bool
    ) -> dict[str, list[dict[str, float]]]:
        """Return what a program prints: by item, for each run of it."""
        spent = [self.costs * self.rng.lognormal(0, 0.2, TASKS) for _ in runs]
        return {
            name: [
                {"score": scores[at]} | ({"cost": cost[at]} if with_cost else {})
                for scores, cost in zip(runs, spent, strict=True)
            ]
            for at, name in enumerate(self.names)
        }

    def write(self, earlier: list[np.ndarray]) -> None:
        """Write the table of earlier runs, and the tasks with and without their costs."""
        with open("runs.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["model", "item", "run", "score"])
            for agent, chances in enumerate(earlier):
                for run in range(RUNS):
                    scores = self.run(chances)
                    rows.writerows(
                        (f"agent-{'abcdefghijklmnop'[agent]}", name, run, score)
                        for name, score in zip(self.names, scores, strict=True)
                    )
        with open("costs.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["item", "cost"])
            rows.writerows(zip(self.names, self.costs, strict=True))


def agents(worlds: int) -> Iterator[Found]:
    """Yield estimates for a sum of money, what was spent, and verdicts between runs of an agent."""
    for world in range(worlds):
        made = Agents(world)
        known = [made.agent() for _ in range(EARLIER)]
        (chances, score), seed = made.agent(), ("--seed", world)
        first, again = made.run(chances), made.run(chances)
        with folder():
            made.write([of for of, _ in known])
            for name, more in (("free", ()), ("priced", ("--items", "costs.csv"))):
                said = fewbench("import", "runs.csv", *LONG, *more, "-o", f"{name}.parquet")
                assert not said.code, said.err
            for source, who in (("free", "the agent reports"), ("priced", "the table has")):
                case = f"costs that {who}"
                lines = made.lines([first], with_cost=source == "free")
                words = ("--cost", f"{LIMIT:g} $", *seed)
                said = run_model(f"{source}.parquet", lines, "first", source, *words)
                target = said.json["targets"]["first"]
                yield from estimates_of(case, world, target["estimate"], first.mean())
                yield from _spent(case, world, source, target["cost"], lines, made)
            lines = made.lines([again], with_cost=True)
            run_model("free.parquet", lines, "again", "free", "--cost", f"{LIMIT:g} $", *seed)
            said = fewbench("versus", "free", "first", "again", "--json").json
            yield Found("two runs of an agent", WRONG, is_wrong(said["verdict"], 0), world)
            other = int(np.argmin([abs(of - score) for _, of in known]))
            name = f"agent-{'abcdefghijklmnop'[other]}"
            said = fewbench("versus", "free:first", name, "--json").json
            truth = score - known[other][1]
            case = "a new and an earlier agent"
            yield Found(case, WRONG, is_wrong(said["verdict"], truth), world)
            yield Found(case, COVERED, covers(said["interval"], truth), world)
            lines = made.lines([first, again], with_cost=True)
            words = ("-n", TASKS // 4, "--repeats", 2, *seed)
            twice = run_model("free.parquet", lines, "twice", "twice", *words).json["targets"]
            both = (first.mean() + again.mean()) / 2
            yield from estimates_of("each task twice", world, twice["twice"]["estimate"], both)


def _spent(
    case: str, world: int, place: str, printed: float, lines: dict[str, list], made: Agents
) -> Iterator[Found]:
    """Yield whether the limit was passed by more than the last task, or misprinted."""
    told = map(json.loads, Path(place, "answers.jsonl").read_text().splitlines())
    ran = [item for line in told if "scores" in line for item in line["items"]]
    costs = dict(zip(made.names, made.costs.tolist(), strict=True))
    paid = sum(lines[item][0].get("cost", costs[item]) for item in ran)
    last = max(made.costs) * 2 if place == "free" else 0.0  # known only afterwards
    wrong = paid > LIMIT + last + 1e-6 or abs(paid - printed) > 0.01
    yield Found(case, LOST, float(wrong), world)
