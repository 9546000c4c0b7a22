"""What an error of each kind says: what is wrong and where, and in its hint what to do.

Other tests assert kinds, places and numbers. The texts of messages are asserted here alone.
"""

import pickle
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import fewbench
from fewbench import Evaluation, errors, load_scores
from fewbench._files import folder_name
from fewbench._memory import check_unpacked
from fewbench.errors import FewbenchError, Mistakes
from fewbench.evaluation.extending import extend
from fewbench.evaluation.view import LivePage
from fewbench.scores import from_arrays, save_scores
from fewbench.testing import simulate

TABLE = simulate(4, 12, seed=1)


def begun(method="random"):
    return Evaluation(TABLE, method, 4, ["new"])


def changed():
    begun().save("run")
    Evaluation.open("run", TABLE.averaged("macro"))


def truncated():
    path = save_scores(TABLE, Path("s.parquet"))
    path.write_bytes(path.read_bytes()[:-20])
    load_scores(path)


def extended():
    begun("greedy-ridge").save("run", save_scores(TABLE, Path("s.parquet")))
    more = TABLE.benchmark.items.rename(index="new {}".format)
    extend("run", fewbench.Benchmark(more))


def served():
    with LivePage() as page:
        LivePage(int(re.search(r":(\d+)/", page.url)[1]))


def told(score=1.0, target="new", times=1):
    evaluation = begun()
    item = evaluation.ask()["new"][0]
    for at in range(times):
        evaluation.tell(target, {item: score - at})


MESSAGES = {
    "changed": (
        changed,
        "run: started with the micro average of the scores, now it is the macro average",
        "pass --average micro (in Python scores.averaged('micro')); fewbench estimate --average "
        "macro asks the other question of the same answers",
    ),
    "conflict": (
        lambda: Evaluation(TABLE, "random"),
        "one of budget and stop is needed",
        "pass budget=100 or stop=Stop(items=100)",
    ),
    "damaged": (
        truncated,
        "s.parquet: not a whole Parquet file …",
        "write or copy it again",
    ),
    "format": (
        lambda: save_scores(TABLE, Path("s.csv")),
        "s.csv: scores are saved as Parquet",
        "use s.parquet",
    ),
    "limit": (
        lambda: check_unpacked(5e9, "s.npz", 3e6),
        "s.npz: 3.00 MB that unpack to 4.7 GB or more, as files do that are made to fill the "
        "memory",
        "if you trust the file, set FEWBENCH_MAX_UNPACKED to the number of gigabytes that it may "
        "take",
    ),
    "missing": (
        lambda: Evaluation.open("run"),
        "run: no evaluation here",
        "start one with fewbench run or fewbench start",
    ),
    "missing-file": (
        lambda: load_scores("s.parquet"),
        "s.parquet: no such file or folder, and no such public source",
        "name a scores file; fewbench import and fewbench add write them; fewbench get list names "
        "public sources",
    ),
    "name": (lambda: folder_name(".."), "'..' cannot name a folder", "use letters and digits"),
    "range": (
        lambda: Evaluation(TABLE, "random", 13),
        "budget of 13: the benchmark has 12 items",
        "use a budget from 1 to 12",
    ),
    "repeated": (
        lambda: from_arrays(np.eye(2), models=["a", "a"]),
        "1 model id appears more than once: 'a'",
        "give every model its own id",
    ),
    "scale": (
        lambda: told(0.5),
        "'new': item 'item-…' has the score 0.5; the source models' answers are right (1) or "
        "wrong (0)",
        "use the metric of the source models; record several runs of an item one by one, with "
        "--repeat 2 and so on (in Python repeat=2); or pass --accept-fractions (in Python "
        "accept_fractions=True)",
    ),
    "taken": (
        lambda: told(times=2),
        "'new': item 'item-…' already has a different score",
        "pass --correct to replace the answer (in Python correct=True); or, for a second answer, "
        "--repeat 2 (in Python repeat=2)",
    ),
    "too-few": (
        lambda: fewbench.run_versus(TABLE, {"a": lambda item: 1.0}, 4),
        "two models are needed",
        "give two functions, or names=(A, B)",
    ),
    "unanswered": (
        lambda: begun().estimate(),
        "no target has answered any item",
        "run the items that ask lists, and record the answers with tell",
    ),
    "unknown": (
        lambda: told(target="old"),
        "'old' is not a target",
        "the targets are 'new'",
    ),
    "unreachable": (
        served,
        "cannot serve on port …: Address already in use",
        "give another --port",
    ),
    "unsupported": (
        extended,
        "the method chose all its items at the start, so it cannot take others in",
        "start an evaluation with the method fewbench, random or aipw, which can",
    ),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_message_says_what_is_wrong_and_its_hint_what_to_do(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, message, hint = MESSAGES[kind]
    with pytest.raises(FewbenchError) as caught:
        call()
    assert caught.value.kind == kind
    assert re.sub(r"\d+(?=': Addr|: Addr|' )|\(Parquet .+\)", "…", caught.value.message) == message
    assert caught.value.hint == hint


def test_every_cause_has_a_message_and_a_line_of_the_list():
    assert set(get_args(errors.Cause)) <= set(MESSAGES)
    for cause in get_args(errors.Cause):
        assert re.search(rf"^{cause} +\w", errors.__doc__, re.M), cause


def test_the_kind_of_a_class_is_its_name():
    kinds = {name: getattr(errors, name).kind for name in errors.__all__ if "Error" in name}
    assert kinds["MissingFileError"] == "missing-file"
    assert len(set(kinds.values())) == len(kinds)


def test_a_kind_stays_with_its_error():
    error = FewbenchError("m", kind="taken").within("file")
    assert (error.kind, str(error)) == ("taken", "file: m")
    assert pickle.loads(pickle.dumps(error)).kind == "taken"
    whole = Mistakes([FewbenchError("a", kind="taken"), FewbenchError("b", kind="taken")]).as_one()
    assert whole.kind == "taken"
    assert Mistakes([FewbenchError("a", kind="taken"), FewbenchError("b")]).as_one().kind != "taken"
