"""lm-eval without source models: tasks become items, and scores are lm-eval's own."""

import functools
import importlib.util
import json
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fewbench import Evaluation, add, import_results, load_scores
from fewbench.cli import app, main
from fewbench.errors import AnswersError, EvaluationError, ReaderError, RunError
from fewbench.evaluation.scoring import Scoring
from fewbench.runners.lm_eval.runner import LmEvalRunner, run_lm_eval
from fewbench.runners.lm_eval.setup import own_generators
from fewbench.runners.lm_eval.sources import SourceDocuments
from fewbench.scores import from_arrays
from fewbench.scores.table import PROMPTS

from .test_lm_eval import tasks_in

lm_eval = pytest.importorskip("lm_eval", reason="needs the extra lm-eval")
SCRIPT = Path(__file__).parents[2] / "scripts/make_runs.py"
spec = importlib.util.spec_from_file_location("make_runs", SCRIPT)
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)

N_ITEMS = 24  # of made_sums; 42 in all tasks
NEW = "made/new"
GROUP = """\
group: {name}
task: [{parts}]
aggregate_metric_list:
  - metric: {metric}
    weight_by_size: {by_size}
    filter_list: [none, strict-match]
"""


@pytest.fixture(autouse=True)
def _own_tasks_alone(monkeypatch):
    """lm-eval's own tasks take seconds to list; no test needs them."""
    from lm_eval.tasks import TaskManager

    alone = functools.partialmethod(TaskManager.__init__, include_defaults=False)
    monkeypatch.setattr(TaskManager, "__init__", alone)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")
    made.run_lm_eval(folder, [NEW], N_ITEMS)
    add_groups(folder)
    return folder


@pytest.fixture
def tasks(tmp_path):
    """Tasks that a test may change."""
    made.write_tasks(tmp_path / "changed", N_ITEMS)
    add_groups(tmp_path / "changed")
    return tmp_path / "changed"


def add_groups(folder):
    """Add groups whose tasks count the same, and one in another."""
    write_group(folder, "evenly", "made_order, made_words", by_size="false")
    write_group(folder, "even_outside", "made_choice, made_more", by_size="false")
    write_group(folder, "by_size_outside", "evenly, made_more", by_size="true")
    text = (folder / "tasks" / "made_words.yaml").read_text()
    more = text.replace("task: made_words", "task: made_more").replace("made_words", "made_order")
    (folder / "tasks" / "made_more.yaml").write_text(more.replace("choices[0]", "choices"))


def write_group(folder, name, parts, by_size, metric="acc"):
    text = GROUP.format(name=name, parts=parts, by_size=by_size, metric=metric)
    (folder / "tasks" / f"_{name}.yaml").write_text(text)


def arguments(folder, *tasks):
    return ["--include_path", str(folder / "tasks"), "--tasks", *tasks]


def benchmark(folder, *tasks, **how):
    return LmEvalRunner(arguments(folder, *tasks), models={}, **how).benchmark()


def run(made_in, tasks, stop, model=None, **settings):
    models = {"new": model or made.scripted(NEW)}
    return run_lm_eval(None, "auto", stop, arguments(made_in, tasks), models=models, **settings)


def results_of(folder):
    (path,) = (folder / "lm_eval" / "new").glob("results_*.json")
    return json.loads(path.read_text())


def test_items_are_those_of_an_import_of_full_logs(zoo):
    found = import_results(zoo / "logs", metric="acc,exact_match", filter="strict-match").scores
    now = benchmark(zoo, "made_sums,made_choice").items
    expected = found.items.drop(columns=PROMPTS)
    assert sorted(now.columns) == sorted(expected.columns)
    assert now[expected.columns.tolist()].equals(expected)
    assert benchmark(zoo, "made_s*", "made_choice").items.equals(now)
    flexible = benchmark(
        zoo, "made_s*,made_ch*", metric="acc_norm", filter="flexible-extract"
    ).items
    assert set(flexible["metric"]) == {"exact_match", "acc_norm"}
    assert set(flexible["filter"]) == {"flexible-extract", ""}


@pytest.mark.parametrize(
    "name", ["evenly", "by_size_outside", "even_outside", "made_sums,made_choice"]
)
def test_scores_of_a_full_run_are_lm_eval_s_own(zoo, name, tmp_path):
    names = name.split(",")
    manager = tasks_in(zoo / "tasks")
    model = made.scripted(NEW)
    own = lm_eval.simple_evaluate(model=model, tasks=names, task_manager=manager, bootstrap_iters=0)
    whole = own["results"]
    n_items = benchmark(zoo, *names).n_items
    result = run(zoo, name, n_items, folder=tmp_path / "run")
    found = results_of(tmp_path / "run")["results"]
    estimate = result.estimates["new"]
    assert estimate.interval.low == estimate.interval.high == estimate.score
    for part in whole:
        metric = next(key for key in found[part] if "stderr" not in key and "," in key)
        assert found[part][metric] == pytest.approx(whole[part][metric]), part
    assert estimate.groups.keys() == own["groups"].keys()
    for group, scored in estimate.groups.items():
        assert scored.score == pytest.approx(whole[group]["acc,none"])
        assert scored.interval.low <= scored.score <= scored.interval.high
        assert scored.interval.high == pytest.approx(scored.interval.low, abs=1e-12)
        assert sorted(scored.parts) == sorted(own["group_subtasks"][group])
    if len(names) == 1:
        assert estimate.score == pytest.approx(found[name]["acc,none"])
    else:  # over all documents
        sizes = {"made_sums": 24, "made_choice": 18}
        scores = found["made_sums"]["exact_match,strict-match"], found["made_choice"]["acc,none"]
        mean = sum(n * score for n, score in zip(sizes.values(), scores, strict=True)) / 42
        assert estimate.score == pytest.approx(mean)


@pytest.mark.parametrize("name", ["by_size_outside", "even_outside"])
def test_groups_of_a_sample_are_in_the_results_file_as_in_the_estimate(zoo, name, tmp_path):
    estimate = run(zoo, name, 14, folder=tmp_path / "run").estimates["new"]
    results = results_of(tmp_path / "run")
    full_score = results["groups"].pop("full score")["acc,none"]
    inner = {"by_size_outside": "evenly", "even_outside": "made_choice"}[name]
    assert list(estimate.groups) == [name, inner]
    assert {group: entry["acc,none"] for group, entry in results["groups"].items()} == {
        group: scored.score for group, scored in estimate.groups.items()
    }
    assert results["fewbench"]["estimate"]["groups"].keys() == results["groups"].keys()
    assert results["group_subtasks"][name] == ["made_more", inner]
    assert full_score == estimate.groups[name].score == estimate.score
    assert estimate.groups[name].interval == estimate.interval
    scored, parts = estimate.groups[inner], estimate.groups[inner].parts
    assert scored.items_run == sum(estimate.task_items[task] for task in parts)
    assert scored.interval.low < scored.score < scored.interval.high
    if inner == "evenly":
        assert scored.score == pytest.approx(np.mean([estimate.tasks[task] for task in parts]))


def test_a_group_keeps_its_weights_beside_other_tasks_and_a_note_says_how_it_counts(zoo, tmp_path):
    n_items = benchmark(zoo, "evenly", "made_sums").n_items
    result = run(zoo, "evenly,made_sums", n_items, folder=tmp_path / "run")
    found = results_of(tmp_path / "run")["results"]
    own = [found[name]["acc,none"] for name in ("made_order", "made_words")]
    assert found["evenly"]["acc,none"] == pytest.approx(sum(own) / 2)
    both = 18 * found["evenly"]["acc,none"] + 24 * found["made_sums"]["exact_match,strict-match"]
    assert result.estimates["new"].score == pytest.approx(both / 42)
    said = "the full score counts 'evenly' (18), 'made_sums' (24) by their documents; within"
    assert any(note.startswith(said) for note in result.notes)
    alone = run(zoo, "evenly", 18, folder=tmp_path / "alone")
    assert not any("the full score counts" in note for note in alone.notes)


def test_a_sample_is_spread_over_tasks_and_its_notes_name_the_metric(zoo, tmp_path):
    result = run(zoo, "made_sums,made_choice", 14, folder=tmp_path / "run")
    sizes = results_of(tmp_path / "run")["n-samples"]
    ran = {name: size["effective"] for name, size in sizes.items()}
    fair = {"made_sums": 8, "made_order": 4, "made_words": 2}
    assert sum(ran.values()) == 14
    assert all(abs(ran[name] - n) <= 1 for name, n in fair.items())
    notes = " ".join(result.notes)
    for said in (
        "filter 'strict-match' of 1 task: 'made_sums'; there is also 'flexible-extract', see --fil",
        "metric 'acc' of 2 tasks: 'made_order', 'made_words'; there is also 'acc_norm', see --met",
    ):
        assert said in notes
    assert "not compared" not in notes


def test_full_logs_can_be_told_and_those_of_another_task_not(zoo, tasks):
    items = benchmark(zoo, "made_choice")
    evaluation = Evaluation(items, budget=8, targets=[NEW])
    asked = evaluation.ask()[NEW]
    logs = import_results(zoo / "logs", like=evaluation.scores, filter="strict-match").scores
    taken = evaluation.tell_table(logs, NEW)
    assert (taken.answers, taken.notes) == (len(asked), ())
    path = tasks / "tasks" / "made_order.yaml"
    path.write_text(path.read_text().replace("target: gold", 'target: "{{(gold + 1) % 3}}"'))
    other = Evaluation(benchmark(tasks, "made_choice"), budget=8, targets=[NEW])
    other.ask()
    with pytest.raises(AnswersError, match="'made_order'"):
        other.tell_table(logs, NEW)


def test_runs_become_the_source_models_of_the_next(zoo, tasks, tmp_path):
    folders = [tmp_path / f"run-{at}" for at in range(3)]
    for at, folder in enumerate(folders):
        models = {f"model-{at}": made.scripted(f"made/model-{at:02d}")}
        given = arguments(zoo, "by_size_outside")
        run_lm_eval(None, "auto", 8, given, models=models, folder=folder, seed=at)
    scores = add(folders)
    assert scores.is_run.sum(axis=1).tolist() == [8, 8, 8]
    given = arguments(zoo)[:2]
    models = {"new": made.scripted(NEW)}
    result = run_lm_eval(scores, "auto", 30, given, models=models, folder=tmp_path / "run")
    assert result.targets["new"].items_run == 30
    results = results_of(tmp_path / "run")["results"]  # as lm-eval weights the groups
    assert results["by_size_outside"]["acc,none"] == result.estimates["new"].score
    own = [results[task]["acc,none"] for task in ("made_order", "made_words")]
    assert results["evenly"]["acc,none"] == pytest.approx(sum(own) / 2)
    path = tasks / "tasks" / "made_words.yaml"
    path.write_text(path.read_text().replace("Question: ", "Q: "))
    with pytest.raises(RunError, match="'made_words'"):
        run_lm_eval(scores, "auto", 30, arguments(tasks)[:2], models=models)


def test_from_the_command_line_with_the_dummy_model(zoo, tmp_path, capsys):
    begin = ["run", "lm-eval", "-n", "10", "-o", str(tmp_path / "run"), "--json", "--"]
    given = ["--model", "dummy", *arguments(zoo, "evenly")]
    app([*begin, *given], standalone_mode=False)
    first = json.loads(capsys.readouterr().out)
    assert first["targets"]["dummy"]["items_run"] == 10
    assert load_scores(tmp_path / "run" / "benchmark.parquet").items["weight"].nunique() == 2
    app([*begin, *given], standalone_mode=False)  # nothing is left to run
    assert json.loads(capsys.readouterr().out)["targets"] == first["targets"]
    other = ["--model_args", "pretrained=org/other"]
    with pytest.raises(RunError, match="model_args"):
        app([*begin[:-1], "-t", "dummy", "--", *given, *other], standalone_mode=False)
    with pytest.raises(RunError, match="2 targets"):
        app([*begin[:-1], "-t", "a", "-t", "b", "--", *given], standalone_mode=False)
    app([*begin, *given[:-1], "made_choice"], standalone_mode=False)
    (told,) = json.loads(capsys.readouterr().out)["targets"]["dummy"]["estimate"]["warnings"]
    assert "the weights of 18 items changed" in told


@pytest.mark.parametrize("places", [["run", "run", "run"], ["a", "b", "c"]], ids=["one", "three"])
def test_named_checkpoints_run_the_same_documents(zoo, tmp_path, capsys, monkeypatch, places):
    """The trainer's path through lm-eval's command line, in one folder and in three."""
    monkeypatch.chdir(tmp_path)
    names = ["ckpt-1", "ckpt-2", "ckpt-3"]
    for name, place in zip(names, places, strict=True):
        given = ["--model", "dummy", "--model_args", f"pretrained=out/{name}"]
        given += arguments(zoo, "made_choice")
        app(["run", "lm-eval", "-n", "12", "-t", name, "-o", place, "--", *given],
            standalone_mode=False)  # fmt: skip
    opened = {name: Evaluation.open(place) for name, place in zip(names, places, strict=True)}
    asked = [one.record.answered(name).tolist() for name, one in opened.items()]
    assert asked[0] == asked[1] == asked[2]
    one = len(set(places)) == 1
    if one:
        assert {path.name for path in Path("run", "lm_eval").iterdir()} == set(names)

    def said(*words):
        capsys.readouterr()
        app([*words, "--json"], standalone_mode=False)
        return json.loads(capsys.readouterr().out)

    found = said("versus", *(["run", "ckpt-2", "ckpt-3"] if one else ["b", "c"]))
    assert (found["a"], found["b"], found["items_common"]) == ("ckpt-2", "ckpt-3", 12)
    assert (found["verdict"], found["pairing"]) == ("undecided", None)
    ranked = said("rank", *dict.fromkeys(places))["targets"]
    assert {one["target"] for one in ranked} == set(names)
    if one:
        assert [point["step"] for point in said("track", "run")["points"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("given", "how", "error", "why"),
    [
        (["made_sum"], {}, RunError, "lm-eval has no task 'made_sum'"),
        ([], {}, RunError, "no tasks and no scores of source models"),
        (["made_choice"], {"metric": "f1"}, ReaderError, "no task has the metric 'f1'"),
        (["made_sums"], {"filter": "none"}, ReaderError, "no task has the filter 'none'"),
    ],
)
def test_what_cannot_be_chosen_is_refused(zoo, given, how, error, why):
    with pytest.raises(error, match=why):
        LmEvalRunner(arguments(zoo, *given) if given else [], models={}, **how).benchmark()


def test_limits_and_tasks_beside_scores_are_refused(zoo, tmp_path):
    with pytest.raises(RunError, match="fewbench chooses the documents"):
        LmEvalRunner([*arguments(zoo, "made_sums"), "--limit", "5"])
    found = import_results(zoo / "logs", metric="acc,exact_match", filter="strict-match").scores
    for given, how, name in (
        (arguments(zoo, "made_sums"), {}, "tasks"),
        ([], {"metric": "acc"}, "metric"),
    ):
        with pytest.raises(RunError, match=f"--{name} is not accepted: the scores name the {name}"):
            run_lm_eval(found, "random", 5, given, models={"new": made.scripted(NEW)}, **how)


def test_scores_that_do_not_name_their_filter_are_refused_before_the_model_answers():
    scores = from_arrays([[1.0]], models=["a"], items=["sums/1"], tasks=["sums"])
    task = SimpleNamespace(metrics=["exact_match"], filters=["strict", "loose"], ids=["sums/1"])
    with pytest.raises(RunError, match=r"'strict'.*'loose'") as caught:
        SourceDocuments(scores).check_metrics({"sums": task})
    assert "--filter strict" in caught.value.hint
    named = scores.changed(items=scores.items.assign(filter="strict"))
    SourceDocuments(named).check_metrics({"sums": task})
    bare = from_arrays([[1.0]], models=["a"], items=["1"], tasks=["sums"])
    with pytest.raises(RunError, check=lambda error: error.kind == "unknown") as caught:
        SourceDocuments(bare).find(["1"], {"sums": task}, is_keyed=True)
    assert caught.value.hint.startswith("name items TASK/ID when you import the scores")


def test_a_task_without_documents_or_with_another_kind_of_score_is_refused(tasks):
    path = tasks / "tasks" / "made_sums.yaml"
    text = path.read_text()
    (tasks / "data" / "made_words.jsonl").write_text("")
    path.write_text(text.replace("aggregation: mean", "aggregation: perplexity"))
    with pytest.raises(RunError, match=r"'exact_match'.*'made_sums'"):
        benchmark(tasks, "made_sums")
    worse = text.replace("better: true", "better: false")
    path.write_text(worse)
    with pytest.raises(RunError, match=r"'exact_match'.*'made_sums'") as e:
        benchmark(tasks, "made_sums")
    assert e.value.hint.startswith("leave the task out; or import logs of source models")
    choice = tasks / "tasks" / "made_order.yaml"
    own = "metric_list:\n  - {metric: acc, higher_is_better: false}\n  - {metric: acc_norm}\n"
    choice.write_text(choice.read_text() + own)
    with pytest.raises(RunError, match=r"'acc'.*'made_order'") as e:
        benchmark(tasks, "made_order")
    assert e.value.hint == "name another with --metric, such as acc_norm"
    assert set(benchmark(tasks, "made_order", metric="acc_norm").items["metric"]) == {"acc_norm"}
    path.write_text(text.replace("test_split: test\n", ""))
    with pytest.raises(RunError, match="'made_sums'"):
        benchmark(tasks, "made_sums")
    with pytest.raises(RunError, match=r"'made_words'.*'made_order'"):
        benchmark(tasks, "made_words", "made_order")


def test_a_group_that_changed_between_two_runs_is_refused_and_named(tasks, tmp_path):
    run(tasks, "made_choice", 6, folder=tmp_path / "run")
    path = tasks / "tasks" / "_made_choice.yaml"
    path.write_text(path.read_text().replace("made_words", "made_more"))
    with pytest.raises(RunError, match="'made_words'"):
        run(tasks, "made_choice", 6, folder=tmp_path / "run")


def test_a_run_leaves_the_generators_of_the_caller_as_they_were(zoo, tmp_path, monkeypatch):
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    run(zoo, "made_sums", 4, folder=tmp_path / "run")
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002
    state = ["as it was"]
    torch = SimpleNamespace(
        get_rng_state=lambda: state[0],
        set_rng_state=lambda own: state.append(own),
        cuda=SimpleNamespace(is_initialized=lambda: False),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(ZeroDivisionError), own_generators():
        raise ZeroDivisionError
    assert state == ["as it was"] * 2


@pytest.mark.parametrize(
    ("lacking", "hint"),
    [("transformers", 'pip install "lm-eval[hf]"'), ("vllm", "pip install vllm")],
)
def test_a_model_whose_library_is_not_installed(zoo, tmp_path, monkeypatch, lacking, hint, capsys):
    def get_model(name):
        raise ModuleNotFoundError(f"No module named {lacking!r}", name=lacking)

    monkeypatch.setattr("lm_eval.api.registry.get_model", get_model)
    words = ["--model", "hf", "--model_args", "pretrained=x", *arguments(zoo, "made_sums")]
    monkeypatch.setattr(
        "sys.argv", ["fewbench", "run", "lm-eval", "-n4", "-o", str(tmp_path / "run"), "--", *words]
    )
    with pytest.raises(SystemExit):
        main()
    said = f"needs {lacking}, which is not installed (hint: {hint})"
    assert capsys.readouterr().err.rstrip().endswith(said)


def test_another_metric_and_filter_are_read_from_the_logs_that_the_run_keeps(zoo, tmp_path):
    model = made.scripted(NEW)
    answer = model.generate_until
    model.generate_until = lambda asked, **how: [
        text.replace("#### ", "It is ") for text in answer(asked, **how)
    ]  # which only the flexible filter finds
    given = {"filter": "flexible-extract,none", "folder": tmp_path / "run"}
    run(zoo, "made_choice,made_sums", 42, model, **given)
    evaluation = Evaluation.open(tmp_path / "run")
    before = (tmp_path / "run" / "answers.jsonl").read_bytes()
    found = import_results(zoo / "logs", metric="acc_norm,exact_match", filter="flexible-extract")
    truth = dict(zip(found.scores.item_ids, found.scores.values[0], strict=True))
    with pytest.raises(EvaluationError, match=r"'new'.*'stric'"):
        evaluation.rescored(Scoring(filter="stric"))
    asked = Scoring(metric="acc_norm,exact_match", filter="flexible-extract,none")
    for scoring in (asked, Scoring(metric="acc_norm")):  # the filter is that of the run
        again = evaluation.rescored(scoring)
        answers = again.record.answers("new")
        ids = again.scores.item_ids[answers.items]
        assert [truth[item] for item in ids] == answers.scores[0].tolist()
        assert len(ids) == 42
    strict = evaluation.rescored(Scoring(filter="strict-match,none")).record.answers("new")
    assert strict.scores[0].tolist() != evaluation.record.answers("new").scores[0].tolist()
    assert (tmp_path / "run" / "answers.jsonl").read_bytes() == before
