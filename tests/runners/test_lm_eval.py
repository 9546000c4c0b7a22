"""Chosen items in lm-eval: what ran is what was chosen, in every trap of lm-eval's own."""

import functools
import importlib.util
import json
import os
import random
import re
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from networks import Tensor

import fewbench
from fewbench import Benchmark, Evaluation, Stop, import_results
from fewbench.errors import (
    AnswersError,
    EstimateWarning,
    MissingExtraError,
    ReaderError,
    RunError,
)
from fewbench.runners.lm_eval.runner import LmEvalRunner, run_lm_eval
from fewbench.runners.lm_eval.setup import cached_in, parse
from fewbench.runners.run import Run
from fewbench.scores.conditions import COLUMNS

lm_eval = pytest.importorskip("lm_eval", reason="needs the extra lm-eval")
ROOT = Path(__file__).parents[2]
N_MODELS, N_ITEMS = 12, 24  # of which 42 in all tasks
NEW = "made/new"


def tasks_in(folder):
    """lm-eval's tasks of a folder; its modules take half a second to import."""
    from lm_eval.tasks import TaskManager

    return TaskManager(include_path=str(folder), include_defaults=False)


def tracker_in(folder):
    from lm_eval.loggers import EvaluationTracker

    return EvaluationTracker(output_path=str(folder))


def load_script():
    spec = importlib.util.spec_from_file_location("make_runs", ROOT / "scripts/make_runs.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


made = load_script()


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """Whole runs of the source models and of the target, by lm-eval itself."""
    folder = tmp_path_factory.mktemp("zoo")
    names = made.models(N_MODELS)
    made.run_lm_eval(folder, [*names, NEW], N_ITEMS)
    return folder


@pytest.fixture(scope="module")
def every(zoo):
    """The scores of all models, the target too."""
    logs = zoo / "logs"
    return import_results(logs, metric="exact_match,acc", filter="strict-match,none").scores


@pytest.fixture(scope="module")
def scores(every):
    return every.take(models=[at for at, name in enumerate(every.model_ids) if name != NEW])


@pytest.fixture(scope="module")
def whole(zoo):
    """The rows of the target's whole run by task and position."""
    return rows_of(zoo / "logs" / "made__new")


@pytest.fixture
def tasks(zoo, tmp_path):
    """A copy of the tasks, to be changed by a test."""
    made.write_tasks(tmp_path / "changed", N_ITEMS)
    return tmp_path / "changed"


def rows_of(folder):
    found = {}
    for path in folder.glob("samples_*.jsonl"):
        task = re.fullmatch(r"samples_(.+)_\d{4}-.*", path.name)[1]
        for line in path.read_text().splitlines():
            row = json.loads(line)
            found[task, row["doc_id"], row["filter"]] = row
    return found


def arguments(folder):
    return ["--include_path", str(folder / "tasks")]


def run(scores, made_in, stop=12, method="random-ridge", model=None, more=(), **settings):
    model = made.scripted(NEW) if model is None else model
    given = [*arguments(made_in), *more]
    result = run_lm_eval(scores, method, stop, given, models={"new": model}, **settings)
    return result, model


def asked_documents(model):
    """Ids of the documents that the model was asked, in order, each once per request group."""
    return list(dict.fromkeys(item for _, item, _ in model.asked))


def true_scores(every, items):
    row = every.values[every.model_ids.index(NEW)]
    return dict(zip(items, row[every.positions(items)], strict=True))


# -- what ran is what was chosen -------------------------------------------------------------


@pytest.mark.parametrize(("method", "stop"), [("random-ridge", 12), ("fluid", 8)])
def test_the_chosen_documents_run_once_with_the_prompts_of_a_whole_run(
    zoo, scores, every, whole, tmp_path, method, stop
):
    result, model = run(scores, zoo, stop, method, folder=tmp_path / "run")
    evaluation = Evaluation.open(tmp_path / "run", scores)
    told = evaluation.record.answers("new")
    items = scores.item_ids[told.items].tolist()
    assert len(items) == stop == result.targets["new"].items_run
    assert dict(zip(items, told.scores[0], strict=True)) == true_scores(every, items)
    logged = rows_of(tmp_path / "run" / "lm_eval" / "new")
    chosen = {(scores.items["task"][one], int(scores.items["doc_id"][one])) for one in items}
    assert {key[:2] for key in logged} == chosen
    for key, row in logged.items():  # everything that lm-eval logs, but for rounding
        assert row == whole[key]
    assert sorted(asked_documents(model)) == sorted(
        row["doc"]["id"] for key, row in logged.items() if key[2] != "flexible-extract"
    )
    most = Counter(Counter(model.asked).values())
    assert set(most) <= {1, 3, 4}  # one request for a sum, one for each option of a choice


def test_the_logs_are_those_of_lm_eval_and_the_results_are_marked_as_an_estimate(
    zoo, scores, tmp_path
):
    from lm_eval.utils import make_table

    result, _ = run(scores, zoo, folder=tmp_path / "run")
    estimate = result.estimates["new"]
    logs = tmp_path / "run" / "lm_eval" / "new"
    (path,) = logs.glob("results_*.json")
    data = json.loads(path.read_text())
    shown = make_table(data) + make_table(data, "groups")
    assert f"full score (estimate from 12 of {scores.n_items} documents, 90% interval" in shown
    assert "made_order (estimate)" in shown
    ran = Counter(task for task, *_, name in rows_of(logs) if name != "flexible-extract")
    assert {task: one["effective"] for task, one in data["n-samples"].items()} == ran
    assert data["n-samples"]["made_order"]["original"] == N_ITEMS // 2
    # The group by the sizes of its tasks, not by the documents that were run.
    sizes = scores.items["task"].value_counts()
    parts = ["made_order", "made_words"]
    group = np.average([estimate.tasks[one] for one in parts], weights=sizes[parts])
    assert data["groups"]["made_choice"]["acc,none"] == pytest.approx(group)
    assert data["fewbench"]["estimate"]["score"] == pytest.approx(estimate.score)
    # `tell` reads them as it reads any log.
    again = Evaluation(scores, "random-ridge", 12, ["made/new"])
    again.ask()
    found = import_results(logs, like=scores).scores
    assert again.tell_table(found, "made/new").answers == 12
    assert again.estimate()["made/new"].score == pytest.approx(estimate.score)


def test_a_run_without_sources_becomes_one_with_its_prompts_and_keys(scores, zoo, tmp_path):
    items = scores.items.drop(columns=[name for name in COLUMNS if name != "harness"])
    run(Benchmark(items), zoo, 16, "random", folder=tmp_path / "first")
    table = fewbench.add(tmp_path / "first", names={str(tmp_path / "first"): "first"})
    ran = table.items.index[~np.isnan(table.values[0])]
    assert len(ran) == 16
    for name in ("prompt_hashes", "key_hashes"):
        assert table.items[name].loc[ran].tolist() == scores.items[name].loc[ran].tolist()
    assert set(table.items["prompt_hashes"].drop(ran)) == {""}
    again, _ = run(table, zoo, 16, "random", seed=1, folder=tmp_path / "second")
    assert again.targets["new"].items_run == 16
    two = fewbench.add(tmp_path / "second", table)
    assert two.model_ids == ["first", "new"]
    with pytest.raises(RunError, match="few-shot examples of task"):
        run(table, zoo, more=["--num_fewshot", "1"], method="random")


def test_moved_documents_are_found_by_their_hash(scores, every, tasks, tmp_path):
    for path in (tasks / "data").glob("made_*.jsonl"):
        if "dev" not in path.name:
            path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    result, _ = run(scores, tasks, folder=tmp_path / "run")
    assert "moved since the source models ran" in " ".join(result.notes)
    told = Evaluation.open(tmp_path / "run", scores).record.answers("new")
    items = scores.item_ids[told.items].tolist()
    assert dict(zip(items, told.scores[0], strict=True)) == true_scores(every, items)
    stopping = Failing(after=20, error=KeyboardInterrupt)
    run(scores, tasks, 12, "random", stopping, batch=4, folder=tmp_path / "stopped")
    made.write_tasks(tasks, N_ITEMS)  # back again, amid the run
    with pytest.raises(RunError, check=lambda error: error.kind == "changed"):
        run(scores, tasks, 12, "random", batch=4, folder=tmp_path / "stopped")


@pytest.mark.parametrize("key", ["id", "doc_id"])
def test_a_table_remembers_the_field_that_names_its_items(zoo, tmp_path, key):
    """A field of the documents, or their number: nobody passes it a second time."""
    logs = import_results(
        zoo / "logs", metric="exact_match,acc", filter="strict-match,none", key=key
    ).scores
    named = logs.take(models=[at for at, name in enumerate(logs.model_ids) if name != NEW])
    result, _ = run(named, zoo, 6, "random", folder=tmp_path / "run")
    told = Evaluation.open(tmp_path / "run", named).record.answers("new")
    row = logs.values[logs.model_ids.index(NEW)]
    assert len(told.items) == 6
    assert told.scores[0].tolist() == row[told.items].tolist()
    of_numbers = [note for note in result.notes if "by their number alone" in note]
    assert bool(of_numbers) == (key == "doc_id")


def test_equal_documents_and_renamed_tasks(tmp_path):
    """Two equal documents are two items, and the user's name of a task is the user's."""
    folder = tmp_path / "twins"
    made.write_tasks(folder, N_ITEMS)
    path = folder / "data" / "made_sums.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:8], lines[3], lines[3]]))
    original = made.write_tasks
    made.write_tasks = lambda *_: folder / "tasks"
    try:
        made.run_lm_eval(folder, made.models(8), N_ITEMS, tasks=("made_sums",))
    finally:
        made.write_tasks = original
    found = import_results(folder / "logs", filter="strict-match").scores
    assert sum("#" in item for item in found.item_ids) == 2
    renamed = replace(found, items=found.items.assign(task="my sums"))
    result, model = run(renamed, folder, 10, "random", folder=tmp_path / "run")
    assert result.targets["new"].items_run == 10 == found.n_items
    assert len(model.asked) == 10
    assert set(result.estimates["new"].tasks) == {"my sums"}
    assert result.estimates["new"].interval.low == result.estimates["new"].interval.high


# -- what is refused, before the model is asked ----------------------------------------------


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["--limit", "5"], "fewbench chooses the documents"),
        (["--limit", "0"], "fewbench chooses the documents"),
        (["--samples", '{"made_sums": [1]}'], "fewbench chooses the documents"),
        (["--cache_requests", "true"], "the prompts of the first documents|invalid choice"),
        (["--predict_only"], "answers would have no scores"),
        (["--output_path", "x"], "logs are written to the folder of the run"),
        (["--no_such_option", "1"], "unrecognized arguments"),
        (["--num_fewshot", "many"], "invalid int value"),
    ],
)
def test_arguments_that_decide_what_runs_are_refused(given, why):
    with pytest.raises(RunError, match=why):
        LmEvalRunner(["run", "--model", "dummy", *given])


def changed_text(folder):
    path = folder / "data" / "made_sums.jsonl"
    path.write_text(path.read_text().replace("What is", "How much is", 1))


def shorter(folder):
    path = folder / "data" / "made_sums.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def edited(name, old, new):
    def edit(folder):
        path = folder / "tasks" / f"{name}.yaml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return edit


def scored_by(line):
    """Give the task of sums a line of its own, such as an argument of its metric."""
    return edited("made_sums", "test_split: test\n", f"test_split: test\n{line}\n")


def with_argument(line):
    metric = "  - metric: exact_match\n"
    return edited("made_sums", metric, f"{metric}    {line}\n")


def scored_by_code(folder):
    code = "def score(doc, results):\n    return {'exact_match': 1.0}\n"
    (folder / "tasks" / "made.py").write_text(code)
    scored_by("process_results: !function made.score")(folder)


ANSWER = "doc_to_target: answer"
WRONG_ANSWER = edited("made_sums", ANSWER, 'doc_to_target: "{{answer|int + 7}}"')
WRONG_KEY = edited("made_words", "doc_to_target: gold", 'doc_to_target: "{{(gold + 1) % 3}}"')
OPTIONS = "doc_to_choice: choices"
TURNED = edited("made_words", OPTIONS, 'doc_to_choice: "{{choices[::-1]}}"')
DELIMITER = edited("made_words", OPTIONS, f'{OPTIONS}\ntarget_delimiter: "_"')
PATTERN = edited("made_sums", '"#### (-?[0-9]+)"', '"#### (-?[0-9]{3})"')
IGNORING = with_argument('regexes_to_ignore: ["[0-5]"]')
KEYS = [
    (WRONG_ANSWER, "24 of 24 items of task 'made_sums' have another right answer"),
    (WRONG_KEY, "6 of 6 items of task 'made_words' have another right answer"),
    (TURNED, "6 of 6 items of task 'made_words' have other options"),
    (DELIMITER, "target delimiter of task 'made_words': '_' in the answers, ' ' in the sources"),
    (PATTERN, r"filter of task 'made_sums': regex\(regex_pattern=#### \(-\?\[0-9\]\{3\}\)\), t"),
    (IGNORING, r"metric of task 'made_sums': exact_match\(regexes_to_ignore=.* in the answers, ex"),
    (scored_by("repeats: 2"), "repeats of task 'made_sums': 2 in the answers, 1 in the sources"),
    (scored_by_code, r"function of task 'made_sums': def score\(doc, results\):"),
]


def other_examples(folder):
    path = folder / "data" / "made_order_dev.jsonl"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))


@pytest.mark.parametrize(
    ("change", "given", "why"),
    [
        (changed_text, [], r"1 of 42 documents that may be run is not in lm-eval's tasks.*now has"),
        (shorter, [], "position 23 of made_sums now has no document"),
        (edited("made_sums", "version: 1.0", "version: 2.0"), [], "task version of task"),
        (edited("made_sums", "Question: ", "Q: "), [], "'made_sums' has other prompts"),
        (edited("made_sums", "do_sample: false", "temperature: 0.7"), [], "temperature of task"),
        (edited("made_sums", "strict-match", "strict"), [], "no filter 'strict-match'"),
        (edited("made_sums", "exact_match", "bleu"), [], "no metric 'exact_match'"),
        (edited("made_order", "num_fewshot: 2", "num_fewshot: 1"), [], "few-shot examples"),
        (other_examples, [], "'made_order' has other prompts"),
        (None, ["--seed", "1,2,3,4"], "'made_order' has other prompts"),
        (None, ["--num_fewshot", "0"], "few-shot examples"),
        (None, ["--system_instruction", "Be brief."], "system prompt"),
        (None, ["--gen_kwargs", "max_gen_toks=5"], "max_gen_toks"),
        *((change, [], why) for change, why in KEYS),
    ],
)
def test_what_differs_from_the_sources_is_refused_before_the_model_is_asked(
    scores, tasks, change, given, why
):
    if change is not None:
        change(tasks)
    model = made.scripted(NEW)
    with pytest.raises(RunError, match=re.compile(why, re.DOTALL)):
        run(scores, tasks, 12, "fluid", model, more=given)
    assert not model.asked


@pytest.mark.parametrize(
    "change",
    [
        with_argument("ignore_case: false"),
        edited("made_sums", "function: regex\n", "function: regex\n        group_select: 0\n"),
        edited("made_words", OPTIONS, f'{OPTIONS}\ntarget_delimiter: " "'),
    ],
)
def test_what_is_so_anyway_is_no_difference(scores, zoo, tasks, change):
    expected, _ = run(scores, zoo)
    change(tasks)
    result, _ = run(scores, tasks)
    assert result.estimates["new"].score == expected.estimates["new"].score
    assert not any(
        "different prompts or scoring" in one for one in result.estimates["new"].warnings
    )
    assert not any("compared" in note for note in result.notes)


@pytest.mark.parametrize(
    ("change", "task", "told", "joined"),
    [
        (WRONG_ANSWER, "made_sums", "have another right answer", "have another right answer"),
        (TURNED, "made_words", "have other options", "'made/new' on 6 items .* other options"),
        (PATTERN, "made_sums", r"\[0-9\]\{3\}.* in the answers", "filter of task .* differs betw"),
        (IGNORING, "made_sums", "exact_match in the sources", "metric of task .* differs between"),
        (
            scored_by("repeats: 2"),
            "made_sums",
            "2 in the answers",
            r"repeats .* \(1: .*; 2: 'made/ne",
        ),
    ],
)
def test_a_log_that_was_scored_in_another_way_is_refused_by_name(
    zoo, scores, tasks, tmp_path, change, task, told, joined
):
    change(tasks)
    logs = tmp_path / "logs"
    tracker = tracker_in(logs)
    results = lm_eval.simple_evaluate(
        model=made.scripted(NEW),
        model_args=f"pretrained={NEW}",
        tasks=[task],
        task_manager=tasks_in(tasks / "tasks"),
        evaluation_tracker=tracker,
        bootstrap_iters=0,
    )
    made.save_logs(tracker, results)
    part = scores.take(items=np.flatnonzero(scores.items["task"] == task))
    new = import_results(logs, like=part).scores
    # A target's answers.
    evaluation = Evaluation(part, "random", 5, [NEW])
    with pytest.raises(AnswersError, match=told):
        evaluation.tell_table(new)
    assert evaluation.tell_table(new, accept_differences=True).answers == 5
    assert re.search(told, " ".join(evaluation.estimate()[NEW].warnings))
    # A source among others.
    among = [path for path in (zoo / "logs").iterdir() if path.name != "made__new"]
    how = {"like": part, "only_tasks": task}
    with pytest.raises(ReaderError, match=f"not scored alike: .*{joined}") as refused:
        import_results([*among, logs], **how)
    assert "--accept-differences" in refused.value.hint
    reading = import_results([*among, logs], **how, accept_differences=True)
    assert re.search(joined, reading.notes[0])
    mixed = Evaluation(reading.scores, "random", 5, ["x"])
    mixed.tell("x", dict.fromkeys(mixed.ask()["x"], 1.0))
    assert "scored in different ways" in " ".join(mixed.estimate()["x"].warnings)


CORNERS = {
    "in_context": """output_type: multiple_choice
doc_to_text: gold
doc_to_choice: "{{[sentence + ' cup', sentence + ' bag']}}"
doc_to_target: end
metric_list: [{metric: acc}]
""",
    "with_code": """output_type: generate_until
doc_to_text: "Q: {{sentence}}"
doc_to_choice: choices
doc_to_target: gold
metric_list: [{metric: exact_match}]
filter_list:
  - name: own
    filter: [{function: custom, filter_fn: !function own.keep}, {function: take_first}]
""",
}


def write_corners(folder):
    tasks, data = folder / "tasks", folder / "data"
    tasks.mkdir(parents=True, exist_ok=True)
    data.mkdir(exist_ok=True)
    (tasks / "own.py").write_text("def keep(resps, docs):\n    return resps\nother = keep\n")
    for task, text in CORNERS.items():
        documents = [
            {"id": f"{at}", "sentence": f"As {at} says, the", "end": "was too large"}
            | {"gold": at % 2, "choices": ["cup", "bag"], "answer": "1"}
            for at in range(8)
        ]
        made.write_documents(data / f"{task}.jsonl", documents)
        kwargs = f"data_files: {{test: {data / task}.jsonl}}, cache_dir: {folder / 'cache'}"
        begin = (
            f"task: {task}\ndataset_path: json\ndataset_kwargs: {{{kwargs}}}\ntest_split: test\n"
        )
        (tasks / f"{task}.yaml").write_text(f"{begin}num_fewshot: 0\n{text}")


def in_chats(name):
    """A model with a chat template of its own."""
    model = made.scripted(name)
    model.apply_chat_template = lambda said, **_: name + "".join(one["content"] for one in said)
    model.chat_template = lambda *_: name
    type(model).tokenizer_name = name
    return model


@pytest.fixture(scope="module")
def corners(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corners")
    write_corners(folder)
    for name in made.models(3):
        tracker = tracker_in(folder / "logs")
        results = lm_eval.simple_evaluate(
            model=in_chats(name),
            model_args=f"pretrained={name}",
            tasks=list(CORNERS),
            task_manager=tasks_in(folder / "tasks"),
            evaluation_tracker=tracker,
            bootstrap_iters=0,
            apply_chat_template=True,
        )
        made.save_logs(tracker, results)
    return import_results(folder / "logs").scores


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            edited("in_context", "doc_to_text: gold", 'doc_to_text: "{{1 - gold}}"'),
            "right option of",
        ),
        (edited("in_context", "' bag'", "' box'"), "other options"),
        (
            edited("with_code", "choices\n", '"{{choices[::-1]}}"\n'),
            r"options of .*choices\[::-1\]",
        ),
        (edited("with_code", "own.keep", "own.other"), None),  # another name of one function
        (edited("with_code", "Q: ", "Ask: "), "prompt template of .*Ask: "),
    ],
)
def test_keys_and_templates_that_stand_elsewhere(corners, tmp_path, change, why):
    """Options in contexts or in no request, a filter's code, prompts of other chat templates."""
    write_corners(tmp_path)
    change(tmp_path)
    model, more = in_chats(NEW), ["--apply_chat_template"]
    if why is not None:
        with pytest.raises(RunError, match=why):
            run(corners, tmp_path, 16, "random", model, more)
        assert not model.asked
        return
    result, _ = run(corners, tmp_path, 16, "random", model, more)
    assert "filter of task 'with_code' is compared by name: its code is not" in str(result.notes)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_task_that_was_edited_amid_a_run_is_refused(scores, tasks, tmp_path, recorded):
    """Also where the sources do not record how they were scored: the run's own logs do."""
    if not recorded:
        names = ["prompt_hashes", "key_hashes", "task_settings"]
        scores = replace(scores, items=scores.items.drop(columns=names))
    folder = tmp_path / "run"
    stopping = Failing(after=20, error=KeyboardInterrupt)
    run(scores, tasks, 12, "random", stopping, batch=4, folder=folder)
    path = tasks / "tasks" / "made_sums.yaml"
    text = path.read_text()
    for change in (WRONG_ANSWER, PATTERN, edited("made_sums", "Question: ", "Q: ")):
        change(tasks)
        model = made.scripted(NEW)
        with pytest.raises(RunError, match=r"differ from the logs of this run: .*sums"):
            run(scores, tasks, 12, "random", model, batch=4, folder=folder)
        assert not model.asked
        path.write_text(text)
    result, _ = run(scores, tasks, 12, "random", batch=4, folder=folder)
    assert result.targets["new"].items_run == 12


def test_what_lm_eval_does_not_run_document_by_document_is_refused(zoo, scores, monkeypatch):
    ids = [item.replace("made_order/", "made_choice/") for item in scores.item_ids]
    items = scores.items.set_axis(ids)
    grouped = replace(scores, items=items.replace({"task": {"made_order": "made_choice"}}))
    with pytest.raises(RunError, match="'made_choice'"):
        run(grouped, zoo)
    # Neither in --include_path nor among lm-eval's own, which take seconds to list.
    from lm_eval.tasks import TaskManager

    begin = TaskManager.__init__
    own = functools.partialmethod(begin, include_defaults=False)
    monkeypatch.setattr(TaskManager, "__init__", own)
    ids = [item.replace("made_order/", "nowhere/") for item in scores.item_ids]
    unknown = replace(
        scores, items=items.set_axis(ids).replace({"task": {"made_order": "nowhere"}})
    )
    with pytest.raises(RunError, match="'nowhere'"):
        run(unknown, zoo)
    elsewhere = replace(scores, items=scores.items.assign(harness="helm", key_field="doc_id"))
    with pytest.raises(Exception, match="'helm'"):
        run(elsewhere, zoo)


def test_a_table_that_says_nothing_of_prompts_and_filters(zoo, scores, tmp_path):
    """A filter must be named before the model answers, and every estimate has a warning."""
    of_task = np.flatnonzero(scores.items["task"] == "made_sums")
    bare = scores.take(items=of_task)
    bare = replace(bare, items=bare.items[["task"]])
    model, folder = made.scripted(NEW), tmp_path / "run"
    with pytest.raises(RunError, match=r"'made_sums'.*'strict-match'"):
        run(bare, zoo, 5, "random", model=model, folder=folder)
    assert not model.asked
    assert not folder.exists()
    warning = "the scores do not record the source models' prompts"
    with pytest.warns(EstimateWarning, match=warning):
        result, _ = run(bare, zoo, 5, "random", folder=folder, filter="strict-match")
    assert result.targets["new"].items_run == 5
    again = Evaluation.open(folder, bare).estimate(warn=False)
    assert warning in " ".join(again["new"].warnings)


# -- faults ----------------------------------------------------------------------------------


class Failing:
    """A scripted model that fails on some documents, or always after a number of calls."""

    def __new__(cls, bad=(), after=None, error=ValueError):
        model = made.scripted(NEW)
        answer, calls = model._is_right, Counter()

        def fail(request):
            calls["n"] += 1
            if request.doc["id"] in bad or (after is not None and calls["n"] > after):
                raise error(f"no memory for {request.doc['id']}")
            return answer(request)

        model._is_right = fail
        return model


def test_a_document_on_which_the_model_fails_is_skipped_and_named(zoo, scores, tmp_path):
    _, model = run(scores, zoo)
    bad = asked_documents(model)[0]
    result, model = run(scores, zoo, model=Failing({bad}), folder=tmp_path / "run")
    (failed,) = result.targets["new"].failed.items()
    assert failed[1] == f"ValueError: no memory for {bad}"
    assert result.targets["new"].items_run == 11
    assert "1 item skipped" in " ".join(result.estimates["new"].warnings)
    assert max(Counter(asked_documents(model)).values()) == 1


def test_a_model_that_always_fails_ends_the_run_which_can_go_on(zoo, scores, tmp_path):
    result, _ = run(scores, zoo, model=Failing(after=0), folder=tmp_path / "run", tries=2)
    assert "failed on 10 items in a row, first: ValueError: no memory for" in result.stopped
    assert result.stopped in repr(result)
    assert json.loads(result.to_json())["stopped"] == result.stopped
    assert not result.estimates
    result, _ = run(scores, zoo, folder=tmp_path / "run", tries=2)
    assert result.targets["new"].items_run == 12
    assert not result.targets["new"].failed


def weighing(numbers):
    """The scripted model as if it had weights, of which 1 answers all as the new model does."""
    model = made.scripted(NEW)
    model.named_parameters = lambda: iter([("weight", Tensor(numbers))])
    if numbers[0] != 1:
        model._is_right = lambda request: False
    return model


def test_another_model_of_the_same_name_gets_no_old_answers(zoo, scores, tmp_path):
    def score(*numbers, cached, **how):
        model = weighing(numbers)
        more = ("--use_cache", str(tmp_path / "answers")) if cached else ()
        return run(scores, zoo, 12, model=model, more=more, **how)[0].score

    assert score(1, cached=True) == score(1, cached=True) == score(1, cached=False)
    assert score(0, cached=True) == score(0, cached=False) < score(1, cached=True)
    with pytest.raises(RunError, match=r"--use_cache.*'new'"):
        run(scores, zoo, more=("--use_cache", str(tmp_path / "answers")))
    score(1, cached=False, folder=tmp_path / "run")
    with pytest.raises(RunError, match="new ran differently: it has other weights"):
        score(0, cached=False, folder=tmp_path / "run")
    run(scores, zoo, folder=tmp_path / "unseen")
    with pytest.warns(EstimateWarning, match="12 answers"):
        run(scores, zoo, folder=tmp_path / "unseen")


def test_a_cache_of_answers_is_of_one_model():
    names = [
        parse(["--model", "hf", "--model_args", f"pretrained={name}", "--use_cache", "c", *more])
        for name, more in (("a", ()), ("b", ()), ("a", ("--batch_size", "4")))
    ]
    a, b, again = (cached_in(setup.use_cache, setup.facts) for setup in names)
    assert a == again != b


@pytest.mark.parametrize("value", [float("nan"), -3.0])
def test_a_model_that_rates_no_options_has_no_score(zoo, tmp_path, value):
    """NaN weights: lm-eval takes the first option for the answer, which is right in a quarter."""
    model = made.scripted(NEW)
    model.loglikelihood = lambda requests: [(value, False) for _ in requests]
    result, _ = run(None, zoo, 18, "auto", model, ("--tasks", "made_choice"), folder=tmp_path)
    assert result.is_failed
    assert not result.estimates
    why = "a log-likelihood is NaN" if value != value else "all options have one log-likelihood"
    assert why in result.stopped


def test_replies_that_no_filter_reads_are_shown(zoo, tmp_path):
    model = made.scripted(NEW)
    model.generate_until = lambda requests: ["The answer is 7." for _ in requests]
    result, _ = run(None, zoo, 20, "auto", model, ("--tasks", "made_sums"), folder=tmp_path)
    said = " ".join(result.estimates["new"].warnings)
    assert "all 20 answers are wrong: check how replies are read and scored; the reply to" in said
    assert "all 20 replies are the same: 'The answer is 7.'" in said


@pytest.mark.parametrize("has_sources", [True, False])
def test_scores_on_another_scale_end_the_run_with_the_first_batch(
    scores, tasks, tmp_path, has_sources
):
    code = "def score(doc, results):\n    return {'exact_match': 87.0}\n"
    (tasks / "tasks" / "made.py").write_text(code)
    scored_by("process_results: !function made.score")(tasks)
    model, more = made.scripted(NEW), () if has_sources else ("--tasks", "made_sums")
    given = {"accept_differences": True, "folder": tmp_path / "run", "model": model, "more": more}
    said = r"task 'made_sums': metric 'exact_match' is 87, outside 0\.\.1"
    with pytest.raises(RunError, match=said) as error:
        run(scores if has_sources else None, tasks, 24, "random", **given)
    assert "--range" not in error.value.hint
    assert ("--metric" in error.value.hint) != has_sources
    assert len(asked_documents(model)) <= 10


@pytest.mark.parametrize(
    ("value", "aggregation"),  # which fails on null, or not
    [("None", "mean"), ("float('nan')", "!function made.middle")],
)
def test_a_document_without_a_score_is_skipped_and_the_others_count(
    scores, tasks, tmp_path, value, aggregation
):
    code = f"def score(doc, results):\n    bad = {value} if doc['id'] == 'sum-3' else 1.0\n"
    code += "    return {'exact_match': bad}\ndef middle(values):\n    return 0.5\n"
    (tasks / "tasks" / "made.py").write_text(code)
    scored_by("process_results: !function made.score")(tasks)
    edited("made_sums", "aggregation: mean", f"aggregation: {aggregation}")(tasks)
    given = {"method": "random", "accept_differences": True, "folder": tmp_path / "run"}
    for _ in range(2):
        result, model = run(scores, tasks, 42, **given)
        ((_, why),) = result.targets["new"].failed.items()
        assert why.startswith(("metric 'exact_match' is n", "TypeError: unsupported"))
        assert (result.targets["new"].items_run, result.stopped) == (41, None)
    assert not model.asked  # the rerun
    read = import_results(tmp_path / "run" / "lm_eval", like=scores).scores
    assert (read.n_items, np.isnan(read.values).sum()) == (41, 0)


@pytest.mark.parametrize("n_items", [20])
def test_an_outage_after_some_answers_skips_no_document(zoo, scores, tmp_path, n_items):
    model = made.scripted(NEW)
    answer, answered = model._is_right, set()

    def fail(request):
        if len(answered | {request.doc["id"]}) > 12:
            raise OSError("no server")
        answered.add(request.doc["id"])
        return answer(request)

    model._is_right = fail
    given = {"method": "random", "folder": tmp_path / "run", "batch": 6}
    result, _ = run(scores, zoo, n_items, model=model, **given)
    assert result.is_failed
    assert "items in a row, first: OSError: no server" in result.stopped
    assert (result.targets["new"].items_run, result.targets["new"].failed) == (12, {})
    result, _ = run(scores, zoo, n_items, **given)
    assert (result.targets["new"].items_run, result.stopped) == (n_items, None)


def test_documents_are_tried_one_by_one_in_the_order_of_the_sample(zoo, scores):
    model = made.scripted(NEW)
    answer, asked = model._is_right, []

    def fail(request):
        asked.append(request.doc["id"])
        if asked.count(request.doc["id"]) == 1 and len(set(asked)) == 3:
            raise ValueError("no memory")
        return answer(request)

    model._is_right = fail
    run(scores, zoo, 12, "random", model)
    items = Evaluation(scores, "random", 12, ["new"]).ask()["new"]
    documents, rows = made.questions(N_ITEMS), scores.items.loc[items]
    chosen = [documents[task][at]["id"] for task, at in zip(rows.task, rows.doc_id, strict=True)]
    failed_at = next(at for at in range(len(asked)) if len(set(asked[: at + 1])) == 3)
    assert list(dict.fromkeys(asked[failed_at + 1 :])) == chosen


def test_ctrl_c_ends_a_run_with_the_estimate_so_far(zoo, scores, tmp_path):
    stopping = Failing(after=20, error=KeyboardInterrupt)
    result, _ = run(scores, zoo, 12, "random", stopping, batch=4, folder=tmp_path / "run")
    n_first = result.targets["new"].items_run
    assert result.stopped == "interrupted"
    assert 4 <= n_first < 12
    (path,) = (tmp_path / "run" / "lm_eval" / "new").glob("results_*.json")
    assert json.loads(path.read_text())["fewbench"]["estimate"]["items_run"] == n_first
    result, model = run(scores, zoo, 12, "random", batch=4, folder=tmp_path / "run")
    assert result.targets["new"].items_run == 12
    assert len(asked_documents(model)) == 12 - n_first


def test_without_lm_eval_or_with_an_old_one_the_error_says_what_to_install(monkeypatch):
    with monkeypatch.context() as older:
        older.delattr("lm_eval.tasks.TaskManager.load")
        with pytest.raises(MissingExtraError, check=lambda error: error.kind == "missing-extra"):
            LmEvalRunner(["--model", "dummy"])
    monkeypatch.setattr("fewbench.runners.lm_eval.setup.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"fewbench\[lm-eval\]"):
        LmEvalRunner(["--model", "dummy"])


def test_logged_answers_are_not_asked_again(zoo, scores, tmp_path):
    """A process killed after it logged answers and before it recorded them."""
    logs = tmp_path / "run" / "lm_eval"
    runner = LmEvalRunner(arguments(zoo), models={"new": made.scripted(NEW)}, folder=logs)
    runner.prepare(scores, ["new"])
    with Run.open(scores, "random-ridge", Stop(items=10), tmp_path / "run", ["new"]) as opened:
        runner.check_items(opened.candidates())
        runner.answer("new", opened.next("new"))
    result, model = run(scores, zoo, 10, folder=tmp_path / "run")
    assert result.targets["new"].items_run == 10
    assert not model.asked
    with pytest.raises(RunError, match=r"num_fewshot.*1,"):
        run(scores, zoo, 10, folder=tmp_path / "run", more=["--num_fewshot", "1"])


def test_killed_at_any_moment_nothing_is_lost_or_asked_twice(zoo, scores, tmp_path, fork):
    folder, log = tmp_path / "run", tmp_path / "asked"
    expected, _ = run(scores, zoo, 40, "random", batch=2)
    rng, kills, done = random.Random(0), 0, False
    while not done:
        child = fork(lambda: answer_slowly(scores, zoo, folder, log))
        if kills < 6:
            time.sleep(rng.uniform(0.02, 0.5))
            os.kill(child, signal.SIGKILL)
            kills += 1
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        done = os.WIFEXITED(status)
        assert done or os.WTERMSIG(status) == signal.SIGKILL
    result, model = run(scores, zoo, 40, "random", batch=2, folder=folder)
    assert not model.asked
    assert result.estimates["new"].score == expected.estimates["new"].score
    asked = Counter(log.read_text().split())
    assert len(asked) == 40
    assert sum(asked.values()) <= 40 + 2 * kills  # the batch in flight


def answer_slowly(scores, zoo, folder, log):
    model = made.scripted(NEW)
    answer = model._is_right

    def slow(request):
        if request.idx == 0:
            with log.open("a") as file:
                file.write(f"{request.doc['id']}\n")
            time.sleep(0.02)
        return answer(request)

    model._is_right = slow
    run(scores, zoo, 40, "random", model, batch=2, folder=folder)


# -- from the command line -------------------------------------------------------------------
