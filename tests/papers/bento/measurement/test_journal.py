"""Answers on disk: there before they are told, whole after a crash, and never of two designs."""

import json
import os
import time
from dataclasses import replace

import pytest

from fewbench._journal import Lines, checked
from fewbench.errors import FewbenchError, TransferError
from fewbench_papers.bento.measurement.answers import ANSWERED, EMPTY, MeasuredAnswer
from fewbench_papers.bento.measurement.journal import Hashes, open_measured, read_measured
from fewbench_papers.bento.measurement.templates import TEMPLATES

FACTS = {"scoring": "top"}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ict"


def journal_of(folder, design, model="m", facts=FACTS):
    return open_measured(folder, design, facts | {"model": model})


def kept(folder, design, model="m", facts=FACTS):
    return read_measured(folder, Hashes(design, facts | {"model": model}), design)


def value_of(request):
    return (request.place % 7) / 7


def fill(folder, design, most=None):
    with journal_of(folder, design) as journal:
        for request in list(journal.answers.pending())[:most]:
            journal.append(request, MeasuredAnswer(value_of(request), "A", 10, 1))
    return journal.answers


def test_every_answer_is_in_the_file_before_it_counts(folder, design):
    made = design()
    with journal_of(folder, made) as journal:
        for request in list(made.requests())[:3]:
            journal.append(request, MeasuredAnswer(1.0, "B", 7, 1))
            lines = (folder / "answers.jsonl").read_text().splitlines()
            assert len(lines) == request.place + 1
    told = json.loads(checked(lines[0].encode()))
    first = made.request(0)
    assert len(told.pop("request")) == 32
    assert told == {
        "seed": 0,
        "source": "a",
        "target": "a",
        "question": made.question(first).id,
        "value": 1.0,
        "said": "B",
        "prompt": 7,
        "completion": 1,
    }


def test_it_is_on_the_disk_at_the_end_and_about_once_a_second(folder, design, monkeypatch):
    synced, now = [], [0.0]
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    made = design()
    with journal_of(folder, made) as journal:
        del synced[:]
        for request in list(made.requests())[:12]:
            now[0] += 0.25
            journal.append(request, MeasuredAnswer(1.0, "B"))
        assert len(synced) == 2
    assert synced[-1] == (folder / "answers.jsonl").stat().st_size


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_cut_off_and_asked_again(folder, design, cut):
    made = design()
    fill(folder, made, 5)
    path = folder / "answers.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert kept(folder, made).n_done == 4
    with journal_of(folder, made) as journal:
        assert path.read_bytes() == b"".join(whole.splitlines(keepends=True)[:4])
        assert next(iter(journal.answers.pending())).place == 4
        journal.append(made.request(4), MeasuredAnswer(value_of(made.request(4)), "A", 10, 1))
    assert path.read_bytes() == whole


def test_a_long_torn_line_is_cut_off_too(folder, design):
    made = design()
    fill(folder, made, 2)
    with (folder / "answers.jsonl").open("ab") as file:
        file.write(b"\0" * 200_000)
    with journal_of(folder, made) as journal:
        assert journal.answers.n_done == 2
    assert len((folder / "answers.jsonl").read_bytes()) < 1000


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b"",
        b"{}",
        b"[1]",
        b'"seed"',
        b'{"seed":0} {"seed":1}',
        {"request": None},
        {"value": "high"},
        {"value": float("nan")},
        {"value": float("inf")},
        {"value": 1.01},
        {"value": -0.5},
        {"value": True},
        {"prompt": "many"},
        {"prompt": -1},
        {"said": 3},
    ],
)
def test_a_damaged_line_is_an_error_with_its_number(folder, design, line):
    made = design()
    fill(folder, made, 4)
    path = folder / "answers.jsonl"
    lines = path.read_bytes().splitlines()
    if isinstance(line, dict):
        record = json.loads(lines[1]) | line
        line = json.dumps({k: v for k, v in record.items() if k != "request" or v}).encode()
    lines[1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    before = path.read_bytes()
    with pytest.raises(TransferError, match=r"answers\.jsonl.*line 2"):
        kept(folder, made)
    with pytest.raises(TransferError, match="line 2"), journal_of(folder, made):
        pass
    assert path.read_bytes() == before


def test_the_first_of_two_answers_counts(folder, design):
    made = design()
    fill(folder, made, 3)
    path = folder / "answers.jsonl"
    first = checked(path.read_bytes().splitlines()[0])
    Lines(path).append(first.replace(b'"value":0.0', b'"value":0.5'))
    again = kept(folder, made)
    assert again.n_done == 3
    assert again.values[0] == 0.0


@pytest.mark.parametrize(
    ("metric", "good", "bad"),
    [("loss", [-7.5, 0.0], 0.1), ("exact-match", [0.0, 1.0], 2), ("accuracy", [0.5], -1e-9)],
)
def test_scores_that_a_metric_cannot_have_are_damage(folder, design, metric, good, bad):
    made = design(metric=metric)
    fill_with(folder, made, good)
    assert kept(folder, made).n_done == len(good)
    with (folder / "answers.jsonl").open("a") as file:
        file.write(line_of(made, 5, bad))
    with pytest.raises(TransferError, match=rf"line {len(good) + 1} is damaged"):
        kept(folder, made)


def fill_with(folder, made, values):
    with journal_of(folder, made) as journal:
        for request, value in zip(made.requests(), values, strict=False):
            journal.append(request, MeasuredAnswer(value, "x", 10, 1))


def line_of(made, place, value):
    request = made.request(place)
    told = {"request": Hashes(made, FACTS | {"model": "m"}).hash_of(request), "value": value}
    return json.dumps(told | {"said": "x", "prompt": 10, "completion": 1}) + "\n"


def test_tokens_of_a_line_that_repeats_another_count_once(folder, design):
    made = design()
    fill(folder, made)
    path = folder / "answers.jsonl"
    path.write_text(path.read_text() * 2)
    for asked in (made, replace(made, seeds=1)):  # the other seed's answers were paid for too
        again = kept(folder, asked)
        assert (again.prompt, again.completion) == (10 * len(made), len(made))
        assert again.complete


def test_empty_texts_are_a_state_of_their_own(folder, design):
    made = design(metric="exact-match")
    with journal_of(folder, made) as journal:
        for request, said in zip(made.requests(), ("", " \n", "x"), strict=False):
            journal.append(request, MeasuredAnswer(0.0, said))
    assert kept(folder, made).states[:3].tolist() == [EMPTY, EMPTY, ANSWERED]


def test_a_measurement_may_grow_and_shrink(folder, design):
    small = design("abc", seeds=1, questions=2, columns=("a",))
    fill(folder, small)
    for change in ({"seeds": 3}, {"questions": 5}, {"columns": None}, {"columns": ("a", "c")}):
        grown = replace(small, **change)
        with journal_of(folder, grown) as journal:
            assert journal.answers.n_done == len(small)
            left = {(r.seed, r.source, r.target, r.question) for r in journal.answers.pending()}
        asked = {tuple(r)[1:] for r in small.requests()}
        assert not left & asked
        assert len(left) == len(grown) - len(small)
    fill(folder, replace(small, seeds=3, columns=None))
    assert kept(folder, small).complete


@pytest.mark.parametrize(
    "change",
    [
        {"exemplars": 3},
        {"seed": 5},
        {"metric": "loss"},
        {"template": TEMPLATES["flan"]},
    ],
)
def test_answers_to_other_requests_are_not_taken(folder, design, change):
    made = design()
    fill(folder, made, 2)
    other = replace(made, **change)
    with (
        pytest.raises(TransferError, match="2 answers"),
        journal_of(folder, other),
    ):
        pass


def test_another_model_or_way_of_asking_finds_no_answer(folder, design):
    made = design("abc")
    fill(folder, made, 2)
    for other in ({"model": "n"}, {"facts": {"scoring": "echo"}}, {"facts": {}}):
        with (
            pytest.raises(TransferError, match="2 answers"),
            journal_of(folder, made, **other),
        ):
            pass
    with journal_of(folder, design("cba")) as journal:  # the order of tasks is not part of it
        assert journal.answers.n_done == 2


def test_of_changed_tasks_only_what_they_change_is_asked_again(folder, design, task):
    """Neither another task nor a changed one takes the answers of the others."""
    made = design("abc")
    fill(folder, made)
    changed = design(tasks=[task("a"), task("b", 13), task("c"), task("d")])
    again = kept(folder, changed)
    names = changed.names
    open_ = {(names[r.source], names[r.target]) for r in again.pending()}
    same = {"a", "c"}
    assert not any({source, target} <= same for source, target in open_)
    assert all((s, t) in open_ for s in names for t in names if "d" in (s, t) or s == "b")
    wrong = [
        r.place
        for r in changed.requests()
        if again.states[r.place] and {names[r.source], names[r.target]} - {"a", "b", "c"}
    ]
    assert not wrong


def test_one_process_at_a_time(folder, design):
    made = design()
    with (
        journal_of(folder, made),
        pytest.raises(FewbenchError, match=r"another process.*choose another folder"),
        journal_of(folder, made),
    ):
        pass


def test_a_line_that_cannot_be_written_is_undone(folder, design, monkeypatch):
    made = design()
    write = os.write
    with journal_of(folder, made) as journal:
        journal.append(made.request(0), MeasuredAnswer(1.0, "A"))
        whole = (folder / "answers.jsonl").read_bytes()
        monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:9]))
        with pytest.raises(OSError, match="No space left"):
            journal.append(made.request(1), MeasuredAnswer(1.0, "A"))
        assert (folder / "answers.jsonl").read_bytes() == whole
        assert journal.answers.n_done == 1
