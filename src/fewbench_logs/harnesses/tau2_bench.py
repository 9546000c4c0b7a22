"""tau2-bench: the results that `tau2 run` writes, and trajectories of its leaderboard."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.files import at, head, load_object, object_at
from fewbench.readers.harness import NOT_RUN, LogRun, LogUnit, Rows, Wants
from fewbench.readers.values import called
from fewbench.support import counted, some

START = re.compile(rb'\s*\{\s*("timestamp"\s*:\s*"[^"]*"\s*,\s*)?"info"\s*:\s*\{')
MARK = re.compile(rb'"num_trials"\s*:|"user_info"\s*:')
BROKEN = ("infrastructure_error", "context_window_exceeded")
"""Ends of simulations that tau2-bench itself leaves out of its rates."""
SUBMITTED = re.compile(r"/submissions/([^/]+)/trajectories/[^/]+$")
"""Files in the leaderboard's repository."""
PLAIN_AGENT = "llm_agent"


class Tau2Bench:
    """Read results of tau2-bench: a task is a domain as Inspect names it, an item one of its tasks.

    Several trials are answers to one item. A model is the language model of the agent, with the
    agent's name unless it is the usual one; of the leaderboard's files, the submission. The
    simulated user is compared as a setting of the task.
    """

    name = "tau2-bench"
    files = "the .json that tau2 run writes"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the files that begin as tau2-bench's do."""
        named = [path for path in files if path.suffix == ".json"]
        starts = [(path, head(path)) for path in named]
        return [LogUnit(path) for path, start in starts
                if START.match(start) and MARK.search(start)]  # fmt: skip

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return the one run of a file."""
        path = unit.path
        if wants.key not in (None, "id", "task_id"):
            raise ReaderError(f"{path}: simulations have no {wants.key!r}", hint="omit --key")
        data = load_object(path, "results of tau2-bench")
        rows, met, not_run = Rows(path, "simulation"), Counter[str](), 0
        for place, simulation in enumerate(simulations_of(data), start=1):
            task, reward = str(simulation["task_id"]), reward_of(simulation)
            if reward is None:
                reward = wants.broken("not-run")
                not_run += 1
            if reward is NOT_RUN:
                continue
            costs = {"cost": simulation.get("agent_cost")}
            rows.append(task, {"reward": reward}, place, trial=met[task], own_id=task, costs=costs)
            met[task] += 1
        listed = [str(task["id"]) for task in data.get("tasks") or [] if at(task, "id") is not None]
        tried = [str(simulation["task_id"]) for simulation in simulations_of(data)]
        lost = [task for task in dict.fromkeys([*listed, *tried]) if not met[task]]
        for task in lost:
            rows.append(task, {"reward": NOT_RUN}, len(tried), own_id=task)
        info = object_at(data, "info")
        user = object_at(info, "user_info")
        arguments = {"llm": user.get("llm"), **object_at(user, "llm_args")}
        count_as = "failed" if wants.errors == "wrong" else "not run"
        notes = [f"simulations ended by a failure of the infrastructure or a full context window, "
                 f"which count as {count_as} ({not_run:,})"] if not_run else []  # fmt: skip
        if lost:
            notes.append(
                f"{counted(len(lost), 'task')} without a trial that counts, not run: {some(lost)}"
            )
        return [
            rows.run(
                _system(path, info),
                task_of(str(at(info, "environment_info", "domain_name") or "")),
                stamp=str(data.get("timestamp") or ""),
                task_settings=(
                    ("simulated user", called(str(user.get("implementation")), arguments)),
                ),
                higher_is_better={"reward": True},
                notes=tuple(notes),
            )
        ]


def task_of(domain: str) -> str:
    """Return the name of a domain as a task, which Inspect uses too."""
    return f"tau2_{domain}" if domain else "tau2"


def simulations_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the simulations of a file, or its index of those in files of their own."""
    listed = data.get("simulations") or data.get("simulation_index")
    if not isinstance(listed, list):
        raise KeyError("simulations")
    return listed


def reward_of(simulation: dict[str, Any]) -> float | None:
    """Return the reward of a simulation: 0 without one, and None where it counts as not run.

    Examples
    --------
    >>> reward_of({"reward_info": {"reward": 1}}), reward_of({"reward_info": None})
    (1.0, 0.0)
    >>> reward_of({"reward_info": None, "termination_reason": "infrastructure_error"}) is None
    True
    """
    if simulation.get("termination_reason") in BROKEN:
        return None
    if "reward" in simulation:  # in an index
        return float(simulation["reward"] or 0.0)
    judged = simulation.get("reward_info")
    return 0.0 if judged is None else float(judged["reward"])


def _system(path: Path, info: dict[str, Any]) -> str:
    """Return the submission that a file is of, or the agent and its model."""
    if match := SUBMITTED.search(path.absolute().as_posix()):
        return match[1]
    agent = object_at(info, "agent_info")
    kind, llm = str(agent.get("implementation") or ""), str(agent.get("llm") or "")
    return llm if kind in ("", PLAIN_AGENT) and llm else "_".join(filter(None, [kind, llm]))
