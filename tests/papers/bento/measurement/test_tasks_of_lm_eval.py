"""Tasks of lm-eval, loaded by lm-eval itself from task files over data made up here."""

import json
import logging
import sys
from importlib import import_module

import pytest

from fewbench.errors import MissingExtraError, TransferError
from fewbench_papers.bento.measurement.harness_tasks import MOST_IN_POOL, _spread
from fewbench_papers.bento.measurement.sources import read_tasks
from fewbench_papers.bento.measurement.templates import TEMPLATES

pytest.importorskip("lm_eval", reason="lm-eval is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # what lm-eval and its data sets warn of

SUMS = [
    {"question": f"{i} + {i} =", "choices": [str(2 * i), str(i), str(3 * i)], "answer": 0}
    for i in range(1, 8)
]
LETTERED = '"{{question}}\\nA. {{choices[0]}}\\nB. {{choices[1]}}\\nC. {{choices[2]}}\\nAnswer:"'


def turned(docs):
    """The right option at all places, as it should be."""
    for place, doc in enumerate(docs):
        by = place % 3
        yield doc | {
            "choices": doc["choices"][-by:] + doc["choices"][:-by],
            "answer": by,
        }


class Folder:
    def __init__(self, root):
        self.root = root
        (root / "tasks").mkdir()

    def add(self, name, docs, few=(), **fields):
        """Write a task: its data, and the file that describes it (values are YAML)."""
        data = self.root / name
        data.mkdir()
        files = {"test": docs, "validation": few} if few else {"test": docs}
        for split, of_split in files.items():
            text = "".join(json.dumps(doc) + "\n" for doc in of_split)
            (data / f"{split}.jsonl").write_text(text)
        described = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": json.dumps(
                {"data_files": {split: str(data / f"{split}.jsonl") for split in files}}
            ),
            "test_split": "test",
            "output_type": "multiple_choice",
            "doc_to_text": LETTERED,
            "doc_to_choice": '["A", "B", "C"]',
            "doc_to_target": "answer",
        }
        if few:
            described |= {"validation_split": "validation", "fewshot_split": "validation"}
        lines = {key: value for key, value in (described | fields).items() if value is not None}
        text = "".join(f"{key}: {value}\n" for key, value in lines.items())
        (self.root / "tasks" / f"{name}.yaml").write_text(text)
        return self

    def read(self, *names):
        return read_tasks([f"lm-eval:{name}" for name in names], include_path=self.root / "tasks")


@pytest.fixture
def folder(tmp_path, monkeypatch, caplog):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    caplog.set_level(logging.ERROR)
    return Folder(tmp_path)


def test_a_prompt_with_lettered_options_is_shown_as_the_harness_shows_it(folder):
    folder.add(
        "sums",
        list(turned(SUMS[2:])),
        list(turned(SUMS[:2])),
        description='"The following are sums.\\n\\n"',
    )
    (task,) = folder.read("sums")
    first = task.questions[0]
    assert (task.name, task.instruction) == ("sums", "The following are sums.\n\n")
    assert [question.id for question in task.questions] == ["0", "1", "2", "3", "4"]
    assert first.text == "3 + 3 =\nA. 6\nB. 3\nC. 9"
    assert first.options_in_text
    assert [question.answer for question in task.questions] == [0, 1, 2, 0, 1]
    template = TEMPLATES["mmlu"]
    assert template.context(task, task.pool[:1]) + template.ask(first) == (
        "The following are sums.\n\n"
        "1 + 1 =\nA. 2\nB. 1\nC. 3\nAnswer: A\n\n"
        "3 + 3 =\nA. 6\nB. 3\nC. 9\nAnswer:"
    )
    assert [question.text[:5] for question in task.pool] == ["1 + 1", "2 + 2"]


def test_options_that_are_not_in_the_text_are_shown_by_the_template(folder):
    folder.add(
        "sums",
        list(turned(SUMS)),
        doc_to_text='"Question: {{question}}\\nAnswer:"',
        doc_to_choice="choices",
    )
    (task,) = folder.read("sums")
    assert not task.questions[0].options_in_text
    assert TEMPLATES["mmlu"].ask(task.questions[1]) == (
        "Question: 2 + 2 =\nA. 6\nB. 4\nC. 2\nAnswer:"
    )
    assert task.questions[1].shown == "B"
    assert task.instruction is None


def test_a_task_that_lists_the_right_option_first_does_not_give_it_away(folder):
    folder.add("sums", SUMS[1:], SUMS[:1], doc_to_text="question", doc_to_choice="choices")
    folder.add("few", SUMS[:3], doc_to_text="question", doc_to_choice="choices")
    (sums, few) = folder.read("sums", "few")
    assert len({question.answer for question in sums.questions}) > 1
    for question, doc in zip((*sums.pool, *sums.questions), SUMS, strict=True):
        assert question.options[question.answer] == doc["choices"][0]
        assert sorted(question.options) == sorted(doc["choices"])
    assert folder.read("sums") == [sums]
    assert [question.answer for question in few.questions] == [0, 0, 0]


def test_options_that_the_text_shows_behind_letters_are_found(folder):
    docs = [doc | {"question": doc["question"] + " (A)"} for doc in turned(SUMS)]
    folder.add("sums", docs, doc_to_choice="choices")
    folder.add("brackets", docs, doc_to_choice='["(A)", "(B)", "(C)"]')
    for task in folder.read("sums", "brackets"):
        assert all(question.options_in_text for question in task.questions)
        assert [question.answer for question in task.questions] == [0, 1, 2, 0, 1, 2, 0]


def test_open_answers_are_the_targets_as_they_stand(folder):
    docs = [
        {"question": f"{{x}} {{{{ {i} }}}}", "answer": f" {i}", "all": [f"{i}", f"#{i}"]}
        for i in range(3)
    ]
    kind = {"output_type": "generate_until", "doc_to_choice": None}
    folder.add("one", docs, doc_to_text='"Q: {{question}}\\nA:"', **kind)
    folder.add("all", docs, doc_to_text="question", **kind | {"doc_to_target": "all"})
    folder.add("read", docs, doc_to_text="question", **kind | {"output_type": "loglikelihood"})
    one, all_, read = folder.read("one", "all", "read")
    assert [question.text for question in one.questions] == [
        "Q: {x} {{ 0 }}",
        "Q: {x} {{ 1 }}",
        "Q: {x} {{ 2 }}",
    ]
    assert [question.answer for question in one.questions] == ["0", "1", "2"]
    assert (all_.questions[1].answer, all_.questions[1].also) == ("1", ("#1",))
    assert read.questions[2].answer == "2"


def test_exemplars_are_never_documents_that_are_scored(folder):
    docs = list(turned(SUMS))
    folder.add("none", docs)  # lm-eval falls back on the scored documents
    folder.add("same", docs, fewshot_split="test")
    folder.add("part", docs[2:], docs[:4])
    none, same, part = folder.read("none", "same", "part")
    assert none.pool == same.pool == ()
    assert len(none.questions) == len(same.questions) == 7
    assert [question.id for question in part.pool] == ["pool-0", "pool-1"]


def test_many_few_shot_documents_are_thinned_at_equal_steps():
    assert list(_spread(list(range(7)))) == list(range(7))
    assert list(_spread(list(range(2 * MOST_IN_POOL)))) == list(range(0, 2 * MOST_IN_POOL, 2))
    assert len(list(_spread(list(range(2 * MOST_IN_POOL + 1))))) <= MOST_IN_POOL
    assert list(_spread([])) == list(_spread(None)) == []


def test_a_description_of_each_document_stands_before_its_text(folder):
    docs = [doc | {"topic": "sums", "place": i} for i, doc in enumerate(turned(SUMS))]
    folder.add("same", docs, description='"On {{topic}}.\\n\\n"')
    folder.add("each", docs, description='"No. {{place}}.\\n\\n"')
    same, each = folder.read("same", "each")
    assert same.instruction == "On sums.\n\n"
    assert each.instruction is None
    assert each.questions[3].text.startswith("No. 3.\n\n4 + 4 =")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"doc_to_target": "-1"}, "document 0: its answer -1 is none of the options"),
        ({"doc_to_target": "[0, 1]"}, "document 0: has 2 right options"),
        ({"output_type": "loglikelihood_rolling"}, "only texts to read"),
        ({"doc_to_text": "answer", "doc_to_choice": "choices"}, "whole prompts|is a int, not text"),
        ({"doc_to_text": '"{{nothing}}"'}, "cannot load 'sums': UndefinedError: 'nothing'"),
        ({"test_split": "dev"}, "cannot load 'sums': KeyError"),
        ({"doc_to_image": "[question]"}, "uses images or sound"),
        (
            {"output_type": "generate_until", "doc_to_choice": None, "doc_to_target": "empty"},
            "document 0: has no answer",
        ),
    ],
)
def test_tasks_that_cannot_be_asked_are_refused(folder, fields, said):
    folder.add("sums", [doc | {"empty": ""} for doc in turned(SUMS)], **fields)
    with pytest.raises(TransferError, match=said):
        folder.read("sums")


def test_a_document_that_breaks_the_task_s_own_code_is_named(folder):
    docs = [*turned(SUMS), {"question": "?", "choices": [], "answer": 0}]
    folder.add("sums", docs, doc_to_choice="choices")
    with pytest.raises(TransferError, match="'sums'"):
        folder.read("sums")


def test_a_group_of_three_tasks_some_behind_a_tag(folder, monkeypatch):
    """The whole index of lm-eval is asked for, of which a group may take tasks."""
    docs = list(turned(SUMS))
    for name in ("sums_a", "sums_b", "sums_c"):
        tag = None if name == "sums_a" else "fewbench_tag"
        folder.add(name, docs[2:], docs[:2], tag=tag, task_alias=f"{name[-1]}_of_sums")
    (folder.root / "tasks" / "group.yaml").write_text(
        "group: fewbench_group\ntask:\n  - sums_a\n  - group: fewbench_inner\n    task:\n"
        "      - fewbench_tag\n"
    )
    tasks = import_module("lm_eval.tasks")
    load, wanted = tasks.TaskManager, []

    def quick(include_path, include_defaults=True):  # the whole index takes 5 s to read
        wanted.append(include_defaults)
        return load(include_path=include_path, include_defaults=False)

    monkeypatch.setattr(tasks, "TaskManager", quick)
    group = folder.read("fewbench_group")
    assert wanted == [False, True]
    assert sorted(task.name for task in group) == ["sums_a", "sums_b", "sums_c"]
    assert {len(task.questions) for task in group} == {5}
    assert {len(task.pool) for task in group} == {2}
    assert sorted(task.subject for task in group) == ["a of sums", "b of sums", "c of sums"]
    with pytest.raises(TransferError, match="'sums_d'"):
        folder.read("sums_a", "sums_d")


def test_a_task_named_twice_is_refused(folder):
    folder.add("sums", list(turned(SUMS)))
    with pytest.raises(TransferError, match="'sums'"):
        folder.read("sums", "sums")


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TransferError, check=lambda error: error.kind == "missing"):
        read_tasks(["lm-eval:sums"], include_path=tmp_path / "absent")


def test_without_lm_eval_the_hint_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lm_eval.tasks", None)
    with pytest.raises(MissingExtraError, match=r"fewbench\[lm-eval\]"):
        read_tasks(["lm-eval:mmlu"])
