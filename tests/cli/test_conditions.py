"""Answers to other prompts, settings and documents than the sources', through the command line."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from fewbench.public import load_scores
from fewbench.readers import import_results
from fewbench.scores import save_scores
from fewbench.scores.conditions import Compared, compare_conditions

STAMP = "2026-01-01T10-00-00"
N = 24
ORDER = list(range(N))


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def write(folder, model, positions=ORDER, order=ORDER, prompt="", target="1", **said):
    """A run of lm-eval of a generation task; `order` says which document stands where."""
    own, task = folder / model.replace("/", "__"), "sums"
    own.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(model))
    lines = []
    for at in positions:
        document = {"question": f"What is the sum of {order[at]} and five, please?"}
        row = {
            "doc_id": at,
            "doc": document,
            **({"target": target} if target else {}),
            "arguments": {"gen_args_0": {"arg_0": f"{prompt}{document['question']}", "arg_1": {}}},
            "filter": "none",
            "metrics": ["exact_match"],
            "doc_hash": sha(json.dumps(document, indent=2)),
            "prompt_hash": sha(prompt + document["question"]),
            "exact_match": float(rng.random() < 0.5),
        }
        lines.append(json.dumps(row) + "\n")
    (own / f"samples_{task}_{STAMP}.jsonl").write_text("".join(lines))
    generation = {"until": ["\n\n"], "do_sample": False} | said.pop("generation", {})
    sampler = {"sampler": said.pop("sampler", "default")}
    more = said.pop("task_config", {})
    results = {
        "model_name": model,
        "n-samples": {task: {"original": N, "effective": len(lines)}},
        "n-shot": {task: said.pop("shots", 0)},
        "versions": {task: said.pop("version", 1.0)},
        "configs": {
            task: {
                "output_type": "generate_until",
                "generation_kwargs": generation,
                "fewshot_config": sampler,
                **more,
            }
        },
        "chat_template": None,
        "system_instruction": None,
        "lm_eval_version": "0.4.13",
    } | said
    (own / f"results_{STAMP}.json").write_text(json.dumps(results))
    return own


@pytest.fixture
def start(ok, tmp_path):
    """Import sources and start an evaluation; return the positions that are asked."""

    def run(**said):
        for at in range(6):
            write(tmp_path / "logs", f"org/m{'x' * at}", **said)
        ok("import", "logs", "-o", "s.parquet")
        ok("start", "s.parquet", "-m", "random", "-n", "5", "-o", "run")
        return json.loads(ok("ask", "run", "--for", "lm-eval"))["sums"]

    return run


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({"shots": 2}, "few-shot examples of task 'sums': 2 in the answers, 0 in the sources"),
        (
            {"generation": {"temperature": 0.7}},
            "temperature of task 'sums': 0.7 in the answers, not set in the sources",
        ),
        ({"chat_template": "{{x}}"}, "applied in the answers, not applied in the sources"),
        ({"system_instruction": "Think."}, "Think. in the answers, none in the sources"),
        ({"version": 2}, "task version of task 'sums': 2 in the answers, 1 in the sources"),
        ({"target": "2"}, "5 of 5 items of task 'sums' have another right answer"),
    ],
)
def test_other_settings_are_refused_unless_accepted(start, cli, ok, tmp_path, said, shown):
    write(tmp_path / "new", "org/new", start(), **said)
    refused = cli("tell", "run", "new")
    assert refused.code == 2
    assert shown in refused.err
    assert "--accept-differences" in refused.err
    assert cli("estimate", "run").kind == "unanswered"
    assert shown in cli("tell", "run", "new", "--accept-differences").err
    # Said with the number, also after the folder was opened again.
    warnings = json.loads(ok("estimate", "run", "--json"))["target"]["warnings"]
    assert any(shown in warning for warning in warnings)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"generation": {"temperature": "0.0", "top_p": 1, "until": "\n\n"}},
        {"version": "1", "n-shot": {"sums": None}},
        {"config": {"model_args": "pretrained=org/new,dtype=auto"}},
        {"lm_eval_version": None},
        {"task_config": {"repeats": "1.0", "metric_list": [{"metric": "exact_match", "x": False}]}},
        {"task_config": {"process_results": "<function score at 0x7fea8c2eb1a0>"}},
        {
            "task_config": {
                "process_results": "def score(doc: dict):\n\n    return {'x': 1}  # all\n"
            }
        },
        {
            "task_config": {
                "filter_list": [{"name": "none", "filter": [{"function": "take_first"}]}]
            }
        },
    ],
)
def test_settings_of_equal_meaning_are_taken(start, cli, tmp_path, said):
    known = {"repeats": 1, "metric_list": [{"metric": "exact_match"}]}
    if "process_results" in (told := said.get("task_config", {})):
        code = "def score(doc):\n    return {'x': 1}\n"
        named = "<function score at 0x7f2ddf4cd260>"
        known["process_results"] = named if "0x" in told["process_results"] else code
    said = said | {"task_config": known | told}
    write(tmp_path / "new", "org/new", start(task_config=known), **said)
    taken = cli("tell", "run", "new")
    assert taken.code == 0, taken.err
    assert "prompt" not in taken.err
    assert ("compared" in taken.err) == ("<function" in str(told))


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        (
            {},
            {"task_config": {"repeats": 8}},
            "not compared: repeats of task 'sums', which the sources do",
        ),
        (
            {"task_config": {"repeats": 8}},
            {},
            "not compared: repeats of task 'sums', which the answers do",
        ),
        ({"target": ""}, {}, "right answers of 5 items are not compared"),
        ({}, {"target": ""}, "right answers of 5 items are not compared"),
    ],
)
def test_what_is_not_recorded_does_not_differ(start, cli, tmp_path, theirs, ours, said):
    write(tmp_path / "new", "org/new", start(**theirs), **ours)
    taken = cli("tell", "run", "new")
    assert taken.code == 0, taken.err
    assert said in taken.err


def test_sources_that_were_scored_in_different_ways(start, cli, tmp_path):
    start()
    write(tmp_path / "logs", "org/other", target="2")
    refused = cli("import", "logs", "-o", "t.parquet")
    assert refused.code == 2
    assert "'org/other' on 24 items of task 'sums' have another right answer" in refused.err
    assert not Path("t.parquet").exists()
    taken = cli("import", "logs", "-o", "t.parquet", "--accept-differences")
    assert "'org/other' on 24 items of task 'sums' have another right answer" in taken.err
    # Targets may have either key; the estimate says so.
    cli("start", "t.parquet", "-m", "random", "-n", "5", "-o", "again")
    asked = json.loads(cli("ask", "again", "--for", "lm-eval").out)["sums"]
    write(tmp_path / "new", "org/new", asked, target="2")
    assert cli("tell", "again", "new").code == 0
    estimate = cli("estimate", "again").out
    assert "24 items of task 'sums' with several right answers" in " ".join(estimate.split())
    write(tmp_path / "third", "org/new", asked, target="3")
    assert "have another right answer" in cli("tell", "again", "third", "--correct").err


def test_sources_that_differ_among_themselves(start, cli, tmp_path):
    write(tmp_path / "logs", "org/other", shots=5, prompt="Five examples. ")
    write(tmp_path / "more", "org/five", start(), shots=5, prompt="Five examples. ")
    assert cli("tell", "run", "more").code == 0
    write(tmp_path / "new", "org/new", start_again(cli), shots=2, prompt="Two. ")
    refused = cli("tell", "again", "new")
    assert "2 in the answers, 0 or 5 in the sources" in refused.err


def start_again(cli):
    imported = cli("import", "logs", "-o", "t.parquet")
    assert "few-shot examples of task 'sums' differs between models (0: " in imported.err
    cli("start", "t.parquet", "-m", "random", "-n", "5", "-o", "again")
    return json.loads(cli("ask", "again", "--for", "lm-eval").out)["sums"]


class TestPrompts:
    def test_other_prompts_are_refused_and_shown(self, start, cli, tmp_path):
        write(tmp_path / "new", "org/new", start(), prompt="Hint: add. ")
        refused = cli("tell", "run", "new")
        assert refused.code == 2
        assert "5 of 5 items of task 'sums' have other prompts than in the sources" in refused.err
        first = load_scores("s.parquet").items.iloc[json.loads(samples(cli))[0]]
        shown = f"{sha('Hint: add. ' + question(first.doc_id))[:16]} in the answers"
        assert shown in refused.err
        assert f"{sha(question(first.doc_id))[:16]} in the sources" in refused.err

    def test_examples_that_follow_from_the_chosen_items(self, start, cli, tmp_path):
        write(tmp_path / "new", "org/new", start(shots=2), shots=2, prompt="Other examples. ")
        taken = cli("tell", "run", "new")
        assert taken.code == 0
        assert "expected, as lm-eval's default few-shot sampler" in taken.err

    def test_another_template_where_other_examples_are_expected(self, start, cli, tmp_path):
        asked = start(shots=2, task_config={"doc_to_text": "{{question}}"})
        said = {"shots": 2, "prompt": "Other. ", "task_config": {"doc_to_text": "Q: {{question}}"}}
        write(tmp_path / "new", "org/new", asked, **said)
        assert "'sums'" in cli("tell", "run", "new").err

    @pytest.mark.parametrize("sampler", ["first_n", "default"])
    def test_other_examples_where_they_are_always_the_same(self, start, cli, tmp_path, sampler):
        asked = start(shots=2, sampler=sampler)
        positions = asked if sampler == "first_n" else ORDER  # the whole task draws as the sources
        said = {"shots": 2, "sampler": sampler, "prompt": "Other examples. "}
        write(tmp_path / "new", "org/new", positions, **said)
        assert "have other prompts" in cli("tell", "run", "new").err

    def test_templates_of_models_are_not_compared(self, start, cli, tmp_path):
        templates = {"chat_template": "{{a}}", "chat_template_sha": sha("a")}
        asked = start(**templates, prompt="<user>")
        others = {"chat_template": "{{b}}", "chat_template_sha": sha("b")}
        write(tmp_path / "new", "org/new", asked, **others, prompt="[INST]")
        taken = cli("tell", "run", "new")
        assert taken.code == 0
        assert "5 items" in taken.err
        write(tmp_path / "same", "org/new", asked, **templates, prompt="[INST]")
        assert "have other prompts" in cli("tell", "run", "same").err

    def test_scores_that_do_not_record_them(self, start, cli, ok, tmp_path):
        asked = start()
        scores = load_scores("s.parquet")
        columns = ["prompt_hashes", "key_hashes", "task_settings", "harness_version"]
        assert set(columns) <= set(scores.items)
        for part in (scores.take(items=np.arange(5)), scores.averaged("macro")):
            assert set(columns) <= set(part.items)
        bare = scores.items.drop(columns=columns)
        save_scores(type(scores)(scores.values, scores.models, bare), "s.parquet")
        write(tmp_path / "new", "org/new", asked, shots=2)
        taken = cli("tell", "run", "new")  # the evaluation was opened with these scores, too
        assert taken.code == 0
        warning = "the scores do not record the source models' prompts"
        assert taken.err.count(warning) == 1
        assert warning in ok("estimate", "run")

    def test_only_the_model_that_is_told_counts(self, start, cli, tmp_path):
        asked = start()
        write(tmp_path / "new", "org/new", asked)
        write(tmp_path / "new", "org/else", asked, shots=2, prompt="Other. ")
        assert "few-shot examples" in cli("tell", "run", "new", "--model", "org/else").err
        assert "recorded 5 answers" in cli("tell", "run", "new", "--model", "org/new").out


def question(at):
    return f"What is the sum of {at} and five, please?"


def samples(cli):
    return json.dumps(json.loads(cli("ask", "run", "--for", "lm-eval").out)["sums"])


class TestMovedDocuments:
    def test_named_and_found_in_another_log(self, start, cli, ok, tmp_path):
        asked = start()
        moved = ORDER[::-1]
        write(tmp_path / "new", "org/new", asked, moved)
        said = cli("tell", "run", "new")
        assert said.code == 2
        assert f"position {min(asked)} of sums holds another document than the sources" in said.err
        assert "--positions" in said.err
        write(tmp_path / "whole", "dummy", ORDER, moved)
        now = ok("ask", "run", "--for", "lm-eval", "--positions", "whole")
        assert json.loads(now) == {"sums": sorted(N - 1 - at for at in asked)}
        write(tmp_path / "again", "org/new", json.loads(now)["sums"], moved)
        assert "recorded 5 answers" in ok("tell", "run", "again")

    def test_documents_that_are_gone(self, start, cli, tmp_path):
        asked = start()
        changed = [at if at != asked[0] else 99 for at in ORDER]
        write(tmp_path / "whole", "dummy", ORDER, changed)
        left = cli("ask", "run", "--for", "lm-eval", "--positions", "whole")
        assert json.loads(left.out) == {"sums": asked[1:]}
        assert "lacks 1 of 5 items" in left.err
        write(tmp_path / "new", "org/new", asked, changed)
        said = cli("tell", "run", "new")
        assert "recorded 4 answers" in said.out
        assert f"warning: position {asked[0]} of sums holds another document" in said.err


def test_the_version_that_samples_needs(start, cli, tmp_path):
    start(lm_eval_version=None)
    said = cli("ask", "run", "--for", "lm-eval").err
    assert "--samples needs lm-eval 0.4.9 or newer" in said
    assert "the source models ran with lm-eval older than 0.4.9" in said


def test_versions_of_lm_eval_that_log_the_same_settings_otherwise():
    """Real logs of one model: nothing differs, whoever wrote them."""
    fixtures = Path(__file__).resolve().parents[1] / "readers" / "fixtures" / "lm_eval"
    only = {"metric": "acc,exact_match", "filter": "strict-match", "same_model": "newest"}
    tables = [
        import_results(
            fixtures / version / "out", only_tasks="toy_capitals,toy_sums", **only
        ).scores
        for version in ("0.4.2", "0.4.3", "0.4.5", "0.4.7", "0.4.9", "0.4.13")
    ]
    for one in tables:
        for other in tables:
            shared = set(one.item_ids) & set(other.item_ids)
            assert len(shared) == 18
            assert compare_conditions(one, other, sorted(shared)) == Compared()
    kept = [json.loads(text) for text in tables[0].items["task_settings"].unique()]
    assert [one["few-shot examples"] for one in kept] == [["0"], ["0"]]


def test_real_logs_of_inspect():
    pytest.importorskip("inspect_ai")
    fixtures = Path(__file__).resolve().parents[1] / "readers" / "fixtures" / "inspect"
    full = import_results(fixtures / "full", metric="choice,match").scores
    for folder, differences in (("subset", 0), ("rerun", 1)):
        told = import_results(fixtures / folder, like=full).scores
        found = compare_conditions(full, told, set(told.item_ids) & set(full.item_ids))
        assert (len(found.differences), found.notes) == (differences, ())
    assert "temperature of task 'toy_capitals': 0.5 in the answers, not set in the sources" in (
        found.differences
    )
