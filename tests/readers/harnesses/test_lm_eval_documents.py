"""Rows that carry another document's prompt, as --cache_requests makes lm-eval write them."""

import hashlib
import json
import math

import pytest

from fewbench.errors import ReaderError
from fewbench.readers import import_results
from fewbench.readers.harness import LogUnit, Wants
from fewbench.readers.harnesses.lm_eval import LmEval, samples


def sha(document):
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def document(at):
    return {
        "question": f"What is the Größe of item number {at}, roughly?",
        "subject": "the sizes of things",
        "options": [],
        "weights": {"é": 1.50, "huge": 1e300, "none": None, "nan": math.nan, "ok": True},
        "answer": 7 * at,
    }


def rows(logs, at, asked=None, log=None):
    """Rows of documents `at`, with the prompts and hashes of documents `asked`."""
    made = []
    for own, other in zip(at, asked or at, strict=True):
        seen, said = document(other), document(own)
        row = logs.free(own, f"Question: {seen['question']}\nAnswer:", doc_hash=sha(seen))
        made.append(row | {"doc": said if log is None else log(said)})
    return made


@pytest.mark.parametrize(
    ("at", "asked", "count"),
    [
        ([10, 20, 30], [0, 1, 2], 3),  # prompts of documents that are not in the file
        ([1, 2, 7], [0, 1, 2], 3),  # of documents that are
        ([0, 1, 7], [0, 1, 2], 1),  # where some rows happen to be right
    ],
)
def test_prompts_of_other_documents_are_refused(logs, at, asked, count):
    folder = logs.write("org/a", "t", rows(logs, at, asked), original=40)
    with pytest.raises(ReaderError, match=f"{count} of 3 rows carry the prompt") as error:
        import_results(folder)
    assert str(next(folder.glob("samples_*"))) in error.value.message
    assert "without --cache_requests" in error.value.hint


def test_a_changed_dataset_in_a_whole_run(logs):
    logs.write("org/a", "t", rows(logs, [0, 1, 2, 3], [1, 0, 2, 3]))
    with pytest.raises(ReaderError, match="2 of 4 rows"):
        import_results(logs.root)


@pytest.mark.parametrize(
    "log",
    [
        None,
        lambda one: one | {"seen": "by the scorer"},  # a task that adds to its documents
        lambda one: {"id": one["answer"]},  # left out, as of documents that may not be shown
        lambda one: one | {"answer": "<image>"},
    ],
)
def test_rows_with_their_own_prompts_are_read(logs, log):
    logs.write("org/a", "t", rows(logs, range(4), log=log))
    assert import_results(logs.root).scores.n_items == 4
    partly = rows(logs, [0, 1]) + rows(logs, [2], log=lambda one: one | {"seen": "later"})
    logs.write("org/a", "u", partly)
    assert import_results(logs.root).scores.n_items == 7


def test_documents_that_do_not_tell_are_noted(logs):
    logs.write("org/a", "t", [logs.free(at, f"{at}+{at}=") for at in range(3)], original=9)
    assert any("--cache_requests" in note for note in import_results(logs.root).notes)
    logs.write("org/a", "t", rows(logs, range(3)), original=9)
    assert not any("--cache_requests" in note for note in import_results(logs.root).notes)


CHANGES = {
    "alike": {},
    "another hash": {"doc_hash": "0" * 64},
    "no hash of the prompt": {"prompt_hash": None},
    "no answer's hash": {"target_hash": ""},
    "fewer responses": {"resps": [[["-1.0", "False"]]]},
    "responses without numbers": {"resps": [[["?", "False"]]] * 3},
    "a second document": {"doc": {"question": "Is this another document of the task?"}},
    "with inputs": {"input": "What is the question that was asked of it?"},
    "with mutual information": {"metrics": ["acc", "acc_mutual_info"], "acc_mutual_info": 0.0},
    "not finite": {"acc": "C"},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_nested", [False, True])
def test_rows_that_begin_alike_are_read_like_the_first(logs, monkeypatch, change, is_nested):
    """Whatever they go on with: what is known about the first row's start changes nothing."""
    own = {"question": 'The question, "resps": of "doc", in a few words'}
    own |= {"inner": {"a": 1, "resps": [[1]], "b": 2}} if is_nested else {}
    row = logs.choice(3, "2 + 2", (-1.0, -2.0, -3.0)) | {"doc": own, "doc_hash": sha(own)}
    first = json.dumps(row)
    row |= {"resps": [[[str(one), "False"]] for one in (-3, -1, -2)], "acc": 0.0}
    later = json.dumps(logs.changed(row, CHANGES[change].copy()))
    if change == "a second document":  # named twice, of which the last counts
        later = json.dumps(row)[:-1] + "," + json.dumps(CHANGES[change])[1:]
    folder = logs.write("org/b", "t", [row])
    unit = LogUnit(next(folder.glob("samples_*")), (next(folder.glob("results_*")),))

    def after(*lines):
        monkeypatch.setattr(samples, "_known", {})
        for line in lines:
            unit.path.write_text(line + "\n")
            try:
                (run,) = LmEval().read(unit, Wants())
            except ReaderError as error:
                return str(error)
        columns = {name: run.columns[name].tolist() for name in run.columns}
        return repr((run.notes, run.unfit, run.layout, columns))

    alone = after(later)
    assert after(first, later) == alone
    assert len(samples._known) == (0 if is_nested else 1)
    assert after(first, later, later) == alone


def test_a_torn_row_that_begins_like_another_is_an_error(logs):
    row = logs.choice(0, "2 + 2")
    logs.write("org/a", "t", [row])
    folder = logs.write("org/b", "t", [row])
    path = next(folder.glob("samples_*"))
    path.write_text(json.dumps(row)[:-9] + "\n")
    with pytest.raises(ReaderError, match=r"line 1: .*char \d{3}"):
        import_results(logs.root)
