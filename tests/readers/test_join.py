"""Runs joined: by content, by time, by what the user says of doubtful ones."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewbench import Evaluation, audit
from fewbench.errors import ReaderError, ScoresError
from fewbench.readers import import_results
from fewbench.readers.harness import Rows
from fewbench.readers.join.table import join
from fewbench.scores.conditions import compare_conditions, count_uncompared, disagreements

from .toy import noted

LATER = "2026-01-02T10-00-00.000001"


def run_of(model, contents, scores, own_ids=("",) * 9, **known):
    """A run made up row by row, as a reader makes it."""
    rows = Rows(Path(f"{model}.log"))
    for place, (content, score) in enumerate(zip(contents, scores, strict=True), start=1):
        rows.append(content, {"acc": score}, place, own_id=own_ids[place - 1])
    return rows.run(model, known.pop("task", "t"), **known)


def three(logs, **changes):
    return [logs.choice(i, f"q{i}", (-1.0, -2.0 + i), **changes) for i in range(3)]


def wrong(logs, n):
    return [logs.choice(i, f"q{i}", (-2.0, -1.0)) for i in range(n)]


class TestSameModelInTwoFolders:
    @pytest.fixture
    def two(self, logs):
        logs.write("org/a", "t", three(logs), folder="june")
        logs.write("org/a", "t", wrong(logs, 2), folder="july", stamp=LATER, original=3)
        return logs.root

    def test_stops_and_says_how_to_go_on(self, two):
        with pytest.raises(ReaderError, match=r"2 of 2 items.*--same-model newest"):
            import_results(two)

    def test_newest(self, two):
        reading = import_results(two, same_model="newest")
        assert reading.scores.values.tolist() == [[0, 0, 0]]
        assert noted(reading, "2 of 3 items .* newer run")

    def test_a_part_with_other_settings_does_not_replace_a_whole_run(self, logs):
        logs.write("org/a", "t", three(logs), folder="june")
        shots = {"n-shot": {"t": 2}}
        logs.write("org/a", "t", wrong(logs, 2), folder="july", stamp=LATER, original=3, **shots)
        reading = import_results(logs.root, same_model="newest")
        assert reading.scores.values.tolist() == [[1, 1, 0]]
        assert noted(reading, "not used, a run of 2 items with other settings than .* whole run")
        assert not noted(reading, "newer run")
        logs.write("org/a", "t", wrong(logs, 3), folder="july", stamp=LATER, **shots)
        assert import_results(logs.root, same_model="newest").scores.values.tolist() == [[0, 0, 0]]

    def test_apart(self, two):
        scores = import_results(two, same_model="apart").scores
        assert scores.model_ids == ["org/a@july", "org/a@june"]
        assert scores.values[1].tolist() == [1, 1, 0]

    def test_apart_only_where_a_task_was_run_twice(self, logs):
        logs.write("org/a", "t", three(logs), folder="june")
        logs.write("org/a", "u", three(logs), folder="july")
        scores = import_results(logs.root, same_model="apart").scores
        assert scores.model_ids == ["org/a"]
        assert not scores.has_missing

    @pytest.mark.parametrize("n_without", [1, 2])
    def test_newest_cannot_be_told_without_times(self, logs, n_without):
        for at, rows in enumerate((three(logs), wrong(logs, 3))):
            path = logs.write("org/a", "t", rows, folder=f"run-{at}", results=False)
            if at < n_without:
                next(path.glob("samples_*")).rename(path / "samples_t.jsonl")
        why = "; one has no time, so the newer one is unknown" if n_without == 2 else ""
        with pytest.raises(ReaderError, match=f"has two scores on item .* items differ{why}"):
            import_results(logs.root, same_model="newest")

    def test_an_unknown_way(self, two):
        with pytest.raises(ReaderError, match="--same-model cannot be 'x'"):
            import_results(two, same_model="x")


class TestRunsOfWhichNoneIsNewer:
    def test_other_settings_are_no_rerun(self, logs):
        logs.write("a", "t", three(logs), **{"n-shot": {"t": 0}})
        later = {"stamp": LATER, "original": 3, "n-shot": {"t": 5}}
        logs.write("a", "t", wrong(logs, 1), **later)
        with pytest.raises(ReaderError, match=r"shots=0.*shots=5"):
            import_results(logs.root)
        both = import_results(logs.root, same_model="apart").scores
        assert both.model_ids == ["a@shots=0", "a"]  # the newest keeps the name
        assert np.isnan(both.values).sum(axis=1).tolist() == [0, 2]

    def test_tasks_with_settings_of_their_own_are_of_one_model(self, logs):
        for folder in ("june", "july"):
            logs.write("a", "t", three(logs), folder=folder, **{"n-shot": {"t": 0}})
            logs.write("a", "u", three(logs), folder=folder, stamp=LATER, **{"n-shot": {"u": 5}})
        scores = import_results(logs.root, same_model="apart").scores
        assert scores.model_ids == ["a@july", "a@june"]
        assert not scores.has_missing

    def test_a_folder_for_each_run_of_a_suite(self):
        runs = [
            run_of("a", ["q"], [score], task=task, group=f"/runs/{suite}/{task}")
            for score, suite, task in [(0, "v1", "t"), (1, "v2", "t"), (1, "v1", "u")]
        ]
        assert join(runs, same_model="apart").scores.model_ids == ["a@v1", "a@v2"]

    def test_they_may_agree(self):
        runs = [run_of("a", ["q", "r"], [0, 1]), run_of("a", ["r", "s"], [1, 1])]
        assert join(runs).scores.values.tolist() == [[0, 1, 1]]


class TestKey:
    def keyed(self, logs, i, **changes):
        row = logs.choice(i, f"q{i}", (-1.0, -2.0 + i), **changes)
        return row | {"doc": {"id": f"cap-{i}", "n": i}}

    def test_a_field_of_the_document_identifies_it(self, logs):
        logs.write("a", "t", [self.keyed(logs, i) for i in range(3)])
        # Another wording of the items: joined all the same, as the user says what they are.
        logs.write("b", "t", [self.keyed(logs, i) | {"doc_hash": f"x{i}"} for i in range(3)])
        reading = import_results(logs.root, key="id")
        assert reading.scores.item_ids.tolist() == ["t/cap-0", "t/cap-1", "t/cap-2"]
        assert not reading.scores.has_missing
        assert import_results(logs.root, key="n").scores.item_ids.tolist() == ["t/0", "t/1", "t/2"]
        assert import_results(logs.root).scores.n_items == 6

    def test_a_field_that_is_the_same_for_several_items(self, logs):
        rows = [self.keyed(logs, i) | {"doc": {"subject": "law"}} for i in range(3)]
        logs.write("a", "t", rows)
        assert (
            import_results(logs.root, key="subject").scores.n_items == 3
        )  # told apart by position
        # This run of a part is out of order, so its positions are not believed.
        logs.write("b", "t", [rows[2], rows[0]], original=3)
        with pytest.raises(ReaderError, match=r"'t'.*'law'"):
            import_results(logs.root, key="subject")

    def test_a_field_that_it_lacks(self, logs):
        logs.write("a", "t", three(logs))
        with pytest.raises(ReaderError, match=r"line 1.*'id'.*'question'"):
            import_results(logs.root, key="id")


class TestMetricsFromLogLikelihoods:
    def rows(self, logs, **changes):
        # The longer option wins per character, the shorter one by log-likelihood.
        return [
            logs.choice(0, "q", (-2.0, -2.5), options=["ab", "abcdef"], right=1, **changes),
            logs.choice(1, "r", (-2.0, -9.0), options=["ab", "abcdef"], right=1, **changes),
        ]

    def test_computed_where_it_is_not_logged(self, logs):
        logs.write("a", "t", self.rows(logs))
        reading = import_results(logs.root, metric="acc_norm")
        assert reading.scores.values.tolist() == [[1, 0]]
        assert noted(reading, "'acc_norm' is computed from log-likelihoods in 1 run")
        assert import_results(logs.root, metric="acc").scores.values.tolist() == [[0, 0]]

    def test_refused_where_the_answer_is_not_known(self, logs):
        logs.write("a", "t", self.rows(logs, target="?"))
        with pytest.raises(ReaderError, match="'acc_norm'"):
            import_results(logs.root, metric="acc_norm")


class TestTasksNamed:
    @pytest.fixture
    def mixed(self, logs):
        logs.write("a", "mc_law", three(logs))
        logs.write("a", "mc_art", three(logs), stamp=LATER)
        lists = [logs.free(i, f"x{i}", scores={"words": [1.0, 2]}) for i in range(2)]
        logs.write("a", "wiki", lists, stamp="2026-01-03T10-00-00")
        return logs.root

    def test_one_that_has_no_score_of_an_item(self, mixed):
        with pytest.raises(ReaderError, match=r"'words'.*'wiki'.*2.*--skip-tasks"):
            import_results(mixed)
        reading = import_results(mixed, skip_tasks="wiki")
        assert reading.scores.tasks == ["mc_art", "mc_law"]
        assert reading.scores.probabilities is not None
        left = reading.files.set_index("task").loc["wiki"]
        assert (left["taken"], left["note"]) == (0, "the task is excluded")

    def test_by_pattern(self, mixed):
        assert import_results(mixed, only_tasks="mc_*").scores.tasks == ["mc_art", "mc_law"]
        assert import_results(mixed, only_tasks="mc_*", skip_tasks="*law").scores.tasks == [
            "mc_art"
        ]

    def test_none_left(self, mixed):
        with pytest.raises(ReaderError, match=r"'mc_art'.*'mc_law'.*'wiki'"):
            import_results(mixed, only_tasks="mmlu")


def test_metric_and_filter_of_other_scores(logs):
    for score, folder in ((0.0, "old"), (1.0, "new")):
        rows = [
            logs.free(0, "x", scores={"m": score, "n": 0.5}, filter=name)
            for name in ("strict", "flexible")
        ]
        logs.write("a", "t", rows, folder=folder)
    sources = import_results(logs.root / "old", metric="n", filter="flexible").scores
    assert sources.items[["metric", "filter"]].iloc[0].tolist() == ["n", "flexible"]
    assert import_results(logs.root / "new", like=sources).scores.values.tolist() == [[0.5]]
    named = import_results(logs.root / "new", metric="m", filter="strict", like=sources)
    assert named.scores.values.tolist() == [[1]]


def test_groups_of_tasks(logs):
    groups = {"mmlu": ["stem"], "stem": ["t"], "t": []}
    logs.write("a", "t", three(logs), group_subtasks=groups)
    logs.write("a", "u", three(logs), group_subtasks={"u": []}, stamp=LATER)
    items = import_results(logs.root).scores.items
    assert items["group"].tolist() == ["mmlu/stem"] * 3 + [""] * 3


def test_equal_documents_are_told_apart_by_the_harness_s_own_ids():
    # The subset is of the second of two equal documents; nothing but its id says so.
    runs = [
        run_of("a", ["same", "same"], [1, 0], ["x", "y"], total=2),
        run_of("b", ["same"], [1], ["y"], total=2),
    ]
    scores = join(runs).scores
    assert scores.items["sample_id"].tolist() == ["x", "y"]
    assert np.array_equal(scores.values, [[1, 0], [np.nan, 1]], equal_nan=True)


def test_equal_documents_are_joined_by_ids_that_agree_with_the_texts():
    ids = ["a", "b", "c", "d"]
    whole = run_of("m", ["same"] * 3 + ["x"], [1, 0, 1, 0], ids, total=4)
    whole = replace(whole, columns={**whole.columns, "position": np.arange(4)})
    shuffled = run_of("n", ["x", *["same"] * 3], [0, 0, 1, 1], ["d", "b", "c", "a"], total=4)
    part = run_of("o", ["same", "same"], [1, 0], ["c", "b"])
    reading = join([shuffled, part, whole])
    rows = dict(zip(reading.scores.model_ids, reading.scores.values.tolist(), strict=True))
    assert rows["m"] == rows["n"] == [1, 0, 1, 0]
    assert rows["o"][1:3] == [0, 1]
    assert reading.scores.items["sample_id"].tolist() == ids
    assert not noted(reading, "joined by their order")
    told = join([part], like=reading.scores).scores
    assert dict(zip(told.item_ids, told.values[0], strict=True)) == {
        reading.scores.item_ids[2]: 1,
        reading.scores.item_ids[1]: 0,
    }


def test_ids_that_number_each_run_anew_identify_nothing():
    """Then only the order is left, which a note says; and of a part nothing is known."""
    whole = run_of("m", ["same", "x", "same"], [1, 0, 0], ["1", "2", "3"])
    other = run_of("n", ["x", "same", "same"], [0, 1, 0], ["1", "2", "3"])
    reading = join([whole, other])
    assert noted(reading, "2 items have the text of other items, .* joined by their order")
    told = join([run_of("o", ["same"], [1], ["1"])], like=reading.scores).scores
    assert not set(told.item_ids) & set(reading.scores.item_ids)


def test_other_harnesses_say_otherwise_how_they_score():
    """Runs joined by --key: right answers and scorers are written in the words of each harness."""
    runs = []
    for harness, answer, scorer in (("one", "B", "match"), ("two", "Rome", "exact_match")):
        for at in range(3):
            rows = Rows(Path(f"{harness}{at}.log"))
            rows.append("q", {"acc": 1}, 1, answer=answer)
            run = rows.run(f"{harness}-{at}", "t", task_settings=(("scoring epochs", "1"),))
            runs.append(replace(run, harness=harness, scorers={"acc": scorer}))
    scores = join(runs).scores
    found = compare_conditions(scores, join(runs[3:]).scores, scores.item_ids)
    assert (found.differences, disagreements(scores)) == ((), ())
    assert "right answers of 1 item are not compared" in count_uncompared(found.uncompared)[0]
    # Options that one run does not log are no other options.
    rows = Rows(Path("more.log"))
    rows.append("q", {"acc": 0}, 1, answer="B", choices=["A", "B"])
    more = replace(rows.run("one-3", "t"), harness="one")
    assert disagreements(join([*runs, more]).scores) == ()
    other = replace(runs[5], scorers={"acc": "other"})
    with pytest.raises(ReaderError, match=r"'t'.*exact_match.*'two-2'"):
        join([*runs[:5], other])


class TestOptionsInAnotherOrder:
    def test_seen_by_the_right_answer_or_the_texts(self, logs):
        options = ["a", "bb"]
        logs.write("a", "t", [logs.choice(0, "q", options=options)])
        logs.write("b", "t", [logs.choice(0, "q", options=options[::-1], right=1)])
        with pytest.raises(ReaderError, match=r"'b'.*1 item.*'t'"):
            import_results(logs.root)
        reading = import_results(logs.root, accept_differences=True)
        assert reading.scores.probabilities is None
        assert noted(reading, "models had their options in a different order in task 't'")


class TestPrompts:
    def prompts(self, logs, **models):
        for model, hashes in models.items():
            rows = [logs.choice(i, f"q{i}", prompt_hash=h) for i, h in enumerate(hashes)]
            logs.write(model, "t", rows)
        return import_results(logs.root)

    def test_most_is_counted_item_by_item(self, logs):
        # Most saw x, y, w; of the third item z and w were seen as often, and a is first.
        reading = self.prompts(logs, a="xyz", b="xyw", c="xvw", d="xyz", e="uyt")
        (note,) = [note for note in reading.notes if "same prompts" in note]
        assert "'b' on 1 item" in note
        assert "'c' on 2 items" in note
        assert "'e' on 2 items" in note
        assert "'a'" not in note
        assert "'d'" not in note

    def test_the_first_where_as_many_saw_another(self, logs):
        assert noted(self.prompts(logs, a="x", b="y"), "different from most: 'b' on 1 item$")

    def test_all_the_same(self, logs):
        assert not noted(self.prompts(logs, a="xy", b="xy"), "prompts")


def test_models_that_were_asked_in_different_ways_keep_a_warning(logs):
    """What import notes is in the audit and with every estimate from the table."""
    for at, shots in enumerate((0, 0, 2)):
        rows = [
            logs.free(i, f"q{i}", score=float(i % 2), prompt_hash=f"{i}{shots}{0:062d}")
            for i in range(6)
        ]
        configs = {"t": {"num_fewshot": shots, "output_type": "generate_until"}}
        logs.write(
            f"org/m{at}", "t", rows, configs=configs, chat_template=None, **{"n-shot": {"t": shots}}
        )
    reading = import_results(logs.root)
    assert noted(reading, "few-shot examples of task 't' differs between models")
    (said,) = disagreements(reading.scores)
    assert said == (
        "the source models were asked in different ways: 6 items of task 't' with several prompts, "
        "few-shot examples of task 't' (0; 2)"
    )
    assert audit(reading.scores).of_kind("other-conditions").what == said
    evaluation = Evaluation(reading.scores, "random", 3, ["new"])
    evaluation.tell("new", dict.fromkeys(evaluation.ask()["new"], 1.0))
    assert said in evaluation.estimate()["new"].warnings
    assert (
        disagreements(import_results([logs.root / "out" / f"org__m{at}" for at in (0, 1)]).scores)
        == ()
    )


def test_models_that_never_meet_are_named(logs):
    for model in "abcd":
        docs = [f"{'x' if model in 'ab' else 'y'}{i}" for i in range(12)]
        logs.write(model, "t", [logs.choice(i, doc) for i, doc in enumerate(docs)], results=False)
    reading = import_results(logs.root)
    assert noted(reading, r"2 groups of models have \(nearly\) no items in common \('a', 'b'; 'c'")
    logs.write("a", "u", three(logs))
    assert sum("no items in common" in note for note in import_results(logs.root).notes) == 1


class TestVersions:
    def test_of_the_task(self, logs):
        configs = {"t": {"num_fewshot": 0, "output_type": "multiple_choice"}}
        logs.write("a", "t", three(logs), versions={"t": 1}, configs=configs)
        logs.write("b", "t", three(logs), versions={"t": 2}, configs=configs)
        reading = import_results(logs.root)
        assert noted(reading, r"task 't' was run in 2 versions \(1: 'a'; 2: 'b'\)")
        assert not noted(reading, "task version")  # said once

    def test_of_items(self, logs):
        for model in "abc":
            rows = three(logs)
            if model == "b":
                rows[1] = logs.choice(1, "q1, reworded")
            logs.write(model, "t", rows)
        reading = import_results(logs.root)
        assert reading.scores.n_items == 4
        assert noted(reading, "whole runs of 'b' have 1 item that most .* lack 1")

    def test_a_run_of_a_part_is_no_other_version(self, logs):
        logs.write("a", "t", three(logs))
        logs.write("b", "t", three(logs)[:2], original=3)
        assert not noted(import_results(logs.root), "version")


def test_copies_of_a_row_count_once_and_may_not_differ(tmp_path):
    def rows(*answers):
        found = Rows(tmp_path / "a.json", "answer")
        for place, (content, position, own_id, score) in enumerate(answers, start=1):
            found.append(content, {"acc": score}, place, position=position, own_id=own_id)
        return found

    # Equal documents differ by position or id; without either they are two items.
    for first, second in (((0, ""), (1, "")), ((-1, "x"), (-1, "y")), ((-1, ""), (-1, ""))):
        run = rows(("q", *first, 1), ("q", *second, 0)).run("org/a", "t")
        scores = join([run]).scores
        assert sorted(scores.values[0].tolist()) == [0, 1]
    for place in ((3, ""), (-1, "q3")):
        run = rows(("q", *place, 1), ("r", 4, "r", 0), ("q", *place, 1)).run("org/a", "t")
        assert (run.n_rows, run.n_items) == (3, 2)
        reading = join([run])
        assert reading.scores.n_items == 2
        assert reading.scores.repeats is None
        assert any(note.endswith("1 row repeated, with the same scores") for note in reading.notes)
        run = rows(("q", *place, 1), ("r", 4, "r", 0), ("q", *place, 0)).run("org/a", "t")
        with pytest.raises(ReaderError, match=r"'t/q'.*'acc'.*1.*1.*0.*3") as caught:
            join([run])
        assert "--trials mean" in caught.value.hint
        mean = join([run], trials="mean").scores
        assert sorted(mean.values[0].tolist()) == [0, 0.5]
        assert mean.repeats is not None
        assert sorted(mean.repeats.counts[0].tolist()) == [1, 2]


def test_runs_of_one_model_are_further_answers_with_trials(tmp_path):
    def run(score, **known):
        rows = Rows(tmp_path / f"{score}.json", "answer")
        for item in range(3):
            rows.append(f"q{item}", {"acc": float(item < score)}, item + 1, position=item)
        return rows.run("org/a", "t", **known)

    runs = [run(score, group=f"run-{score}", stamp=f"2026-01-0{score}") for score in (1, 2, 3)]
    with pytest.raises(ReaderError) as caught:
        join(runs)
    assert "--trials mean" in caught.value.hint
    scores = join(runs, trials="mean").scores
    np.testing.assert_allclose(scores.values[0], [1, 2 / 3, 1 / 3])
    np.testing.assert_array_equal(scores.repeats.counts[0], 3)
    np.testing.assert_allclose(join(runs, trials="pass@2").scores.values[0], [1, 1, 2 / 3])
    assert join(runs, trials="mean", same_model="newest").scores.values[0].tolist() == [1, 1, 1]
    with pytest.raises(ScoresError, match=r"pass@2.*2 answers"):
        join(runs[:1], trials="pass@2")
    other = [runs[0], run(2, group="run-2", variant="temperature=1")]
    with pytest.raises(ReaderError, check=lambda error: error.kind == "conflict"):
        join(other, trials="mean")


def test_trials_of_documents_without_a_place_are_of_one_item(tmp_path):
    rows = Rows(tmp_path / "a.json", "answer")
    rows.append("q", [{"acc": 1}, {"acc": 0}], 1, answer="4", prompt="1 + 1", reply="cut")
    rows.append("q", [{"acc": 1}, {"acc": 1}], 2)  # the same document once more: another item
    run = rows.run("org/a", "t")
    assert (run.n_rows, run.n_items) == (4, 2)
    assert run.columns["reply"].tolist() == ["cut", "cut", "", ""]
    assert (run.columns["key"][:2] > 0).all()
    assert (run.columns["prompt"][:2] > 0).all()
    scores = join([run]).scores
    assert scores.values[0].tolist() == [0.5, 1.0]
    assert scores.repeats.counts[0].tolist() == [2, 2]


def test_a_metric_renamed_between_logs_is_one_metric_if_both_names_are_named(logs):
    for model, metric, score in (("org/a", "match", 1.0), ("org/b", "exact", 0.0)):
        rows = [logs.free(0, "q", score=score)]
        rows[0][metric] = rows[0].pop("exact_match")
        rows[0]["metrics"] = [metric]
        out = logs.write(model, "t", rows).parent
    with pytest.raises(ReaderError, match=r"--metric.*'t'"):
        import_results(out)
    with pytest.raises(ReaderError, match="'match'") as caught:
        import_results(out, metric="match")
    assert "--metric match,exact" in caught.value.hint
    reading = import_results(out, metric="match,exact")
    assert reading.scores.values.tolist() == [[1], [0]]
    assert set(reading.scores.items["metric"]) == {"match"}
    assert any("its metric 'exact' counts as 'match'" in note for note in reading.notes)
    assert reading.files["taken"].tolist() == [1, 1]
    assert not any("filter" in note for note in reading.files["note"])


def test_all_tasks_that_cannot_be_joined_are_named_at_once(logs):
    for task in ("s", "t"):
        rows = [logs.free(0, "q", exact_match=[1])]
        out = logs.write("org/a", task, rows).parent
    with pytest.raises(ReaderError) as caught:
        import_results(out)
    assert caught.value.message.startswith("2 mistakes: (1)")
    assert "of task 's'" in caught.value.message
    assert "of task 't'" in caught.value.message
