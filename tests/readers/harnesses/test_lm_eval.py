import json
from pathlib import Path

import numpy as np
import pytest

from fewbench.errors import ReaderError
from fewbench.readers import import_results
from fewbench.readers.harnesses.lm_eval import name_parts
from fewbench.scores import Scale

from ..toy import noted

LATER = "2026-01-02T10-00-00.000001"


def three(logs, **changes):
    return [logs.choice(i, f"q{i}", (-1.0, -2.0 + i), **changes) for i in range(3)]


def by_hash(logs, doc, task="t"):
    return f"{task}/{logs.choice(0, doc)['doc_hash'][:16]}"


class TestTable:
    def test_items_do_not_depend_on_position(self, logs):
        rows = three(logs)
        logs.write("a", "t", rows)
        turned = [row | {"doc_id": at} for at, row in enumerate(rows[::-1])]
        logs.write("b", "t", turned)
        reading = import_results(logs.root)
        assert np.array_equal(reading.scores.values[0], reading.scores.values[1])
        # The dataset was in another order, so no position is safe for --samples but the middle.
        known = reading.scores.items["doc_id"].loc[by_hash(logs, "q1")]
        assert known == 1
        assert reading.scores.items["doc_id"].isna().sum() == 2
        assert noted(reading, "2 items have different positions")

    def test_several_tasks_and_cells_that_were_not_run(self, logs):
        logs.write("a", "t", three(logs))
        logs.write("b", "t", three(logs)[:1], original=3)
        logs.write("a", "u", [logs.choice(0, "q0")], stamp=LATER)
        reading = import_results(logs.root)
        assert reading.scores.tasks == ["t", "u"]
        assert np.isnan(reading.scores.values[1]).tolist() == [False, True, True, True]
        assert noted(reading, r"model 'b' ran 1 of 3 items of task 't'")
        assert noted(reading, r"model 'b' did not run 1 task: 'u'")

    def test_equal_documents_are_items_of_their_own(self, logs):
        rows = [logs.choice(0, "same"), logs.choice(1, "other"), logs.choice(2, "same", right=1)]
        logs.write("a", "t", rows)
        logs.write("b", "t", [rows[2], rows[0], rows[1]])  # as two processes write them
        scores = import_results(logs.root).scores
        same = by_hash(logs, "same")
        assert scores.item_ids.tolist() == [same, by_hash(logs, "other"), f"{same}#2"]
        assert scores.values.tolist() == [[1, 1, 0], [1, 1, 0]]

    def test_an_equal_document_in_a_subset_is_told_by_its_position(self, logs):
        rows = [logs.choice(0, "same"), logs.choice(1, "other"), logs.choice(2, "same", right=1)]
        logs.write("a", "t", rows)
        logs.write("b", "t", rows[1:], original=3)
        scores = import_results(logs.root).scores
        assert scores.values[1].tolist() == pytest.approx([np.nan, 1, 0], nan_ok=True)

    def test_an_equal_document_alone_is_told_by_the_sources_positions(self, logs):
        rows = [logs.choice(0, "same"), logs.choice(1, "other"), logs.choice(2, "same", right=1)]
        sources = import_results(logs.write("a", "t", rows)).scores
        alone = logs.write("b", "t", rows[2:], original=3)
        assert import_results(alone, like=sources).scores.item_ids.tolist() == [
            f"{by_hash(logs, 'same')}#2"
        ]

    def test_one_file_and_the_same_file_twice(self, logs):
        folder = logs.write("a", "t", three(logs))
        file = next(folder.glob("samples_*"))
        assert import_results(file).scores.equals(import_results([file, folder, logs.root]).scores)


class TestModelNames:
    def test_from_arguments_when_results_do_not_name_it(self, logs):
        config = {"model_args": "dtype=float16,pretrained=org/base,peft=org/adapter"}
        logs.write("x", "t", three(logs), model_name=None, config=config)
        assert import_results(logs.root).scores.model_ids == ["org/adapter"]

    def test_from_the_folder_without_results(self, logs):
        logs.write("org/a", "t", three(logs), results=False)
        reading = import_results(logs.root)
        assert reading.scores.model_ids == ["org/a"]
        assert noted(reading, "no results file of this run")

    def test_other_results_of_the_folder_name_it(self, logs):
        folder = logs.write("org/a", "t", three(logs))
        folder.rename(folder.with_name("moved"))
        logs.write("moved", "u", three(logs), stamp=LATER, results=False)
        assert import_results(logs.root).scores.model_ids == ["org/a"]

    def test_output_path_that_is_a_json_file(self, logs):
        for model, stamp in (("org/a", "2026-01-01T10-00-00"), ("org/b", LATER)):
            folder = logs.write(model, "t", three(logs), stamp=stamp)
            (folder / f"results_{stamp}.json").rename(logs.root / f"x_{stamp}.json")
            (folder / f"samples_t_{stamp}.jsonl").rename(logs.root / f"samples_t_{stamp}.jsonl")
        assert import_results(logs.root).scores.model_ids == ["org/a", "org/b"]

    def test_one_name_with_different_arguments_is_noted(self, logs):
        for stamp, dtype in (("2026-01-01T10-00-00", "float16"), (LATER, "auto")):
            arguments = {"pretrained": "org/a", "dtype": dtype}
            logs.write("org/a", "t", three(logs), stamp=stamp, config={"model_args": arguments})
        assert noted(import_results(logs.root), r"'org/a' have different model arguments \(dtype\)")

    def test_revisions_are_models_of_their_own(self, logs):
        for stamp, revision in (("2026-01-01T10-00-00", "step1"), (LATER, "main")):
            arguments = {"pretrained": "org/a", "revision": revision}
            logs.write("org/a", "t", three(logs), stamp=stamp, config={"model_args": arguments})
        assert import_results(logs.root).scores.model_ids == ["org/a@step1", "org/a"]


class TestRuns:
    def test_the_newest_run_is_taken(self, logs):
        logs.write("a", "t", three(logs))
        logs.write("a", "t", three(logs, right=1), stamp=LATER)
        reading = import_results(logs.root)
        assert reading.scores.values.tolist() == [[0, 0, 1]]
        assert noted(reading, r"3 of 3 items of samples_t_2026-01-01.* from a newer run")

    def test_positions_of_a_run_out_of_order_are_not_believed(self, logs):
        rows = three(logs)
        mixed = [rows[0] | {"doc_id": 2}, rows[1] | {"doc_id": 0}]
        logs.write("a", "t", mixed, original=3)
        reading = import_results(logs.root)
        assert reading.scores.items["doc_id"].isna().all()
        assert noted(reading, "positions of 2 items are unknown")
        logs.write("b", "t", rows)
        assert import_results(logs.root).scores.items["doc_id"].tolist() == [0, 1, 2]

    def test_one_position_logged_twice_for_different_documents(self, logs):
        rows = [logs.choice(2, "q2"), logs.choice(2, "q7")]  # --samples [2, 2, 7]
        logs.write("a", "t", rows, original=9)
        scores = import_results(logs.root).scores
        assert scores.n_items == 2
        assert scores.items["doc_id"].isna().all()


class TestMetricAndFilter:
    def test_the_first_name_that_a_task_has(self, logs):
        logs.write("a", "t", three(logs, scores={"acc": 1.0, "acc_norm": 0.0}))
        logs.write("a", "u", [logs.free(0, "x", 0.5)], stamp=LATER)
        reading = import_results(logs.root, metric="acc_norm,acc,exact_match")
        assert reading.scores.values.tolist() == [[0, 0, 0, 0.5]]
        assert noted(reading, "metric 'acc_norm' of 1 task: 't'")
        only = import_results(logs.root, metric="acc")  # where there is one there is nothing to ask
        assert only.scores.items["metric"].tolist() == ["acc"] * 3 + ["exact_match"]
        with pytest.raises(ReaderError, match=r"'f1'.*'acc'"):
            import_results(logs.root, metric="f1")

    def test_a_file_of_another_name(self, logs):
        file = next(logs.write("a", "t", three(logs)).glob("samples_*"))
        renamed = file.rename(file.with_name("mine.jsonl"))
        reading = import_results(renamed)
        assert reading.scores.tasks == ["mine"]
        assert noted(reading, "not named samples_TASK_TIME, so the task has the name of the file")

    def test_the_only_scalar_metric_needs_no_name(self, logs):
        rows = [logs.free(0, "x", scores={"strict": True, "each": [True, False], "f1": [0, 1]})]
        logs.write("a", "t", rows)
        assert import_results(logs.root).scores.values.tolist() == [[1]]
        with pytest.raises(ReaderError, match=r"'each'.*'t'.*2"):
            import_results(logs.root, metric="each")

    @pytest.mark.parametrize("text", ["True", "1.0", "1"])
    def test_numbers_written_as_text(self, logs, text):
        logs.write("a", "t", [logs.free(0, "x", text)])
        assert import_results(logs.root).scores.values.tolist() == [[1]]

    def filtered(self, logs):
        return [
            logs.free(i, f"x{i}", float(name == "flexible-extract"), filter=name)
            for name in ("strict-match", "flexible-extract")
            for i in range(2)
        ]

    def test_the_first_metric_and_filter_count_as_for_a_run(self, logs):
        """Said in a note; but never for a target of sources that may have been scored otherwise."""
        logs.write("a", "t", self.filtered(logs))
        logs.write("a", "u", three(logs, scores={"acc": 1.0, "acc_norm": 0.0}), stamp=LATER)
        reading = import_results(logs.root)
        assert set(reading.scores.items["metric"]) == {"exact_match", "acc"}
        assert set(reading.scores.items["filter"]) == {"strict-match", ""}
        assert reading.notes[:2] == (
            "metric 'acc' of 1 task: 'u'; there is also 'acc_norm', see --metric",
            "filter 'strict-match' of 1 task: 't'; there is also 'flexible-extract', see --filter",
        )
        unsaid = reading.scores.changed(
            items=reading.scores.items.drop(columns=["metric", "filter"])
        )
        with pytest.raises(ReaderError, match="--filter strict-match --metric acc;"):
            import_results(logs.root, like=unsaid)

    def test_a_model_without_the_filter_of_the_others(self, logs):
        logs.write("a", "t", self.filtered(logs))
        logs.write("b", "t", self.filtered(logs)[2:])
        assert import_results(logs.root, filter="flexible-extract").scores.n_models == 2
        with pytest.raises(ReaderError, match="'strict-match'"):
            import_results(logs.root, filter="strict-match")
        with pytest.raises(ReaderError, match="--filter"):
            import_results(logs.root)  # not the first filter, which b lacks

    def test_lower_is_better_must_be_stated(self, logs):
        logs.write("a", "t", [logs.free(0, "x", 0.25)], higher=False)
        with pytest.raises(ReaderError, match="--lower-is-better"):
            import_results(logs.root)
        scale = Scale(0, 1, lower_is_better=True)
        assert import_results(logs.root, scale=scale).scores.values.tolist() == [[0.75]]

    def test_higher_is_better_must_not_be_denied(self, logs):
        logs.write("a", "t", [logs.free(0, "x", 0.25)])
        with pytest.raises(ReaderError, match="higher is better"):
            import_results(logs.root, scale=Scale(0, 1, lower_is_better=True))


class TestOlderVersions:
    def old(self, logs, rows):
        return [
            {key: value for key, value in row.items() if key not in ("filter", "metrics")}
            for row in rows
        ]

    def test_two_rows_a_document(self, logs):
        rows = [logs.free(0, "x", 0.0), logs.free(0, "x", 1.0)]
        logs.write("a", "t", self.old(logs, rows))
        with pytest.raises(ReaderError, match=r"line 2.*document 0.*0\.4\.7"):
            import_results(logs.root)


class TestProbabilities:
    def of(self, reading):
        return np.stack(list(reading.scores.probabilities.by_model()))

    def test_softmax_of_the_log_likelihoods(self, logs):
        logs.write("a", "t", [logs.choice(0, "q", (np.log(0.3), np.log(0.1)))])
        assert self.of(import_results(logs.root)) == pytest.approx(np.array([[[0.75, 0.25]]]))

    def test_floats_and_lists_as_in_memory(self, logs):
        row = logs.choice(0, "q", resps=[[[0.0, True]], [["-inf", False]]])
        row["arguments"] = [["q", " yes"], ["q", " no"]]
        logs.write("a", "t", [row])
        assert self.of(import_results(logs.root)).tolist() == [[[1, 0]]]

    def test_padding_and_cells_not_run(self, logs):
        rows = [
            logs.choice(0, "q0", (-1.0, -1.0)),
            logs.choice(1, "q1", (-1.0, -1.0, -np.inf, -1.0)),
        ]
        logs.write("a", "t", rows)
        logs.write("b", "t", rows[:1], original=2)
        reading = import_results(logs.root)
        assert reading.scores.items["n_options"].tolist() == [2, 4]
        a, b = self.of(reading)
        assert np.allclose(a, [[0.5, 0.5, 0, 0], [1 / 3, 1 / 3, 0, 1 / 3]])
        assert b[0].tolist() == [0.5, 0.5, 0, 0]
        assert np.isnan(b[1]).all()

    @pytest.mark.parametrize(
        ("metric", "best"), [("acc", 0), ("acc_norm", 1), ("acc_bytes", 2), ("acc_mutual_info", 0)]
    )
    def test_the_most_probable_option_is_the_one_that_was_scored(self, logs, metric, best):
        # Per character: -1.5, -1, -1.1; per byte: -1.5, -1, -0.55.
        options, likelihoods = ["ab", "abcd", "éééé"], (-3.0, -4.0, -4.4)
        scores = {metric: float(best == 1)}
        row = logs.choice(0, "q", likelihoods, right=1, options=options, scores=scores)
        if metric == "acc_mutual_info":
            row |= self.without_question(row, (-2.0, -1.0, -1.0))
        logs.write("a", "t", [row])
        reading = import_results(logs.root)
        assert self.of(reading).argmax() == best
        assert reading.scores.items["n_options"].tolist() == [3]
        assert not noted(reading, "do not explain")

    @staticmethod
    def without_question(row, likelihoods, alternate=False):
        """Fields of a row whose options were also scored without the question."""
        requests = [
            (arguments, resp)
            for arguments, resp in zip(row["arguments"].values(), row["resps"], strict=True)
        ]
        bare = [
            (arguments | {"arg_0": ""}, [[str(v), "False"]])
            for (arguments, _), v in zip(requests, likelihoods, strict=True)
        ]
        both = [*requests, *bare]
        if alternate:
            both = [one for pair in zip(requests, bare, strict=True) for one in pair]
        return {
            "arguments": {f"gen_args_{i}": arguments for i, (arguments, _) in enumerate(both)},
            "resps": [resp for _, resp in both],
        }

    @pytest.mark.parametrize("alternate", [False, True])
    def test_acc_beside_mutual_information_is_with_the_question(self, logs, alternate):
        row = logs.choice(0, "q", scores={"acc": 1.0, "acc_mutual_info": 0.0})
        logs.write("a", "t", [row | self.without_question(row, (-1.0, -9.0), alternate)])
        assert self.of(import_results(logs.root, metric="acc")).argmax() == 0
        assert self.of(import_results(logs.root, metric="acc_mutual_info")).argmax() == 1

    def test_mixed_up_requests_are_named(self, logs):
        row = logs.choice(0, "q", scores={"acc": 0.0, "acc_mutual_info": 0.0})
        logs.write("a", "t", [row | self.without_question(row, (-1.0, -9.0))])
        assert noted(
            import_results(logs.root, metric="acc_mutual_info"), r"0\.4\.5 to 0\.4\.8.*\(1 here\)"
        )

    def test_options_in_the_context(self, logs):
        row = logs.choice(0, "q", (-2.0, -1.0), target="is here.")
        for at, name in enumerate(("Ann", "Bob")):
            row["arguments"][f"gen_args_{at}"] = {"arg_0": f"{name}", "arg_1": " is here."}
        logs.write("a", "t", [row | {"acc": 1.0}])
        reading = import_results(logs.root)
        assert self.of(reading).argmax() == 1
        assert not noted(reading, "do not explain")

    def test_the_delimiter_under_a_chat_template(self, logs):
        row = logs.choice(0, "q", (-6.0, -5.0), options=["ab", " a"], scores={"acc_norm": 0.0})
        for at, text in enumerate(("ab", " a")):
            row["arguments"][f"gen_args_{at}"]["arg_1"] = text
        logs.write("a", "t", [row], chat_template="{{messages}}")
        assert self.of(import_results(logs.root)).argmax() == 1

    def test_a_logged_score_that_does_not_follow_is_noted(self, logs):
        rows = three(logs)
        rows[0]["acc"] = 0.0
        logs.write("a", "t", rows)
        assert noted(import_results(logs.root), r"do not explain 1 score of 'acc' .*'a'")

    def test_a_target_that_is_also_the_text_of_an_option_is_not_checked(self, logs):
        logs.write("a", "t", [logs.choice(0, "q", (-1.0, -2.0), 1, ["1", "2"], acc=1.0)])
        assert not noted(import_results(logs.root), "do not explain")

    def test_none_unless_every_task_is_multiple_choice(self, logs):
        logs.write("a", "t", three(logs))
        logs.write("a", "u", [logs.free(0, "x")], stamp=LATER)
        reading = import_results(logs.root, metric="acc,exact_match")
        assert reading.scores.probabilities is None
        assert noted(reading, "no option probabilities are kept: task 'u' is not multiple choice")

    @pytest.mark.parametrize("likelihoods", [("-inf", "-inf"), ("inf", "-1")])
    def test_no_finite_log_likelihood(self, logs, likelihoods):
        broken = [[[value, "False"]] for value in likelihoods]
        logs.write("a", "t", [logs.choice(0, "q", resps=broken, acc=0.0), logs.choice(1, "r")])
        reading = import_results(logs.root)
        assert reading.scores.probabilities is None
        assert noted(reading, "no finite log-likelihoods")
        logs.write("b", "t", [logs.choice(0, "q"), logs.choice(1, "r")])
        assert np.isnan(self.of(import_results(logs.root))[0, 0]).all()

    def test_models_with_different_options(self, logs):
        logs.write("a", "t", [logs.choice(0, "q", (-1.0, -2.0))])
        logs.write("b", "t", [logs.choice(0, "q", (-1.0, -2.0, -3.0))])
        reading = import_results(logs.root, accept_differences=True)
        assert reading.scores.probabilities is None
        assert noted(reading, "different options")

    def test_an_empty_option(self, logs):
        row = logs.choice(0, "q", (-1.0, -2.0), options=["", "b"], scores={"acc_norm": 0.0})
        logs.write("a", "t", [row])
        assert self.of(import_results(logs.root)).argmax() == 1


def test_rows_whose_options_were_not_rated_count_as_not_run(logs):
    """lm-eval takes the first option for the answer where all are NaN."""
    nan = float("nan")
    rows = [logs.choice(i, f"q{i}", (-1.0, -2.0, -3.0)) for i in range(4)]
    broken = [logs.choice(i, f"q{i}", (nan, nan, -1.0), acc=1.0) for i in (0, 1)]
    tie = [logs.choice(2, "q2", (-1.0, -1.0, -1.0))]
    logs.write("org/a", "t", rows)
    logs.write("org/b", "t", [*broken, *tie, rows[3]], folder="b")
    reading = import_results(logs.root)
    row = reading.scores.values[reading.scores.model_ids.index("org/b")]
    assert np.isnan(row).tolist() == [True, True, True, False]
    assert noted(
        reading, r"samples_t_.*: 3 items count as not run, .*log-likelihood is NaN \(line 1"
    )
    logs.write("org/c", "t", [logs.choice(i, f"q{i}", (nan, nan)) for i in range(4)], folder="c")
    with pytest.raises(ReaderError, match="the model rated no options: a log-likelihood is NaN"):
        import_results(logs.root)
    assert set(import_results(logs.root, damaged="skip").scores.model_ids) == {"org/a", "org/b"}


def test_two_options_are_equally_likely_by_chance(logs):
    rows = [logs.choice(i, f"q{i}", (-1.0, -1.0 if i else -2.0)) for i in range(6)]
    logs.write("org/a", "t", rows)
    assert not np.isnan(import_results(logs.root).scores.values).any()
    logs.write("org/b", "t", [logs.choice(i, f"q{i}", (0.0, 0.0)) for i in range(6)])
    with pytest.raises(ReaderError, match="all options have one log-likelihood"):
        import_results(logs.root)


def test_a_metric_that_is_no_mean_of_its_rows_is_refused(logs):
    configs = {"t": {"metric_list": [{"metric": "spread", "aggregation": "median"}]}}
    rows = [logs.free(i, f"q{i}", scores={"spread": 0.5, "exact_match": 1.0}) for i in range(3)]
    logs.write("org/a", "t", rows, configs=configs)
    assert import_results(logs.root).scores.items["metric"].unique().tolist() == ["exact_match"]
    with pytest.raises(ReaderError, match=r"'spread'.*'median'"):
        import_results(logs.root, metric="spread")


def test_rows_inside_results(tmp_path):
    """As json.dump(simple_evaluate(…)) writes them; numbers are no texts there."""
    fixtures = Path(__file__).resolve().parents[1] / "fixtures" / "lm_eval"
    folder = fixtures / "0.4.9" / "out" / "toy__model-a"
    results = json.loads(next(folder.glob("results_*.json")).read_text())
    assert import_results(folder, metric="acc,exact_match").scores.n_items
    results["samples"] = {}
    for path in folder.glob("samples_*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            of_choice = all(len(answer[0]) == 2 for answer in row["resps"])
            if of_choice:
                row["resps"] = [[[float(one[0][0]), one[0][1] == "True"]] for one in row["resps"]]
            row["arguments"] = [[*each.values()] for each in row["arguments"].values()]
        results["samples"][name_parts(path)[0]] = rows
    (tmp_path / "results.json").write_text(json.dumps(results))
    inside, beside = (import_results(place).scores for place in (tmp_path, folder))
    assert inside.equals(beside)
    del results["samples"]
    (tmp_path / "results.json").write_text(json.dumps(results))
    with pytest.raises(ReaderError, match="holds totals"):
        import_results(tmp_path)
