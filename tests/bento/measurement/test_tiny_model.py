"""The tiny model of the tests is a language model: it is a distribution, and reads its prompt."""

import json

import numpy as np
import pytest
from tiny_model import LETTERS, tiny_model, tiny_tasks

TITLE = "The following are multiple choice questions (with answers) about {}.\n\n"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    paths = tiny_tasks(tmp_path_factory.mktemp("tasks"))
    return {p.stem: [json.loads(line) for line in p.read_text().splitlines()] for p in paths}


def shown(row, *, answer):
    options = "".join(
        f"{letter}. {o}\n" for letter, o in zip(LETTERS, row.get("options", []), strict=False)
    )
    return f"{row['question']}\n{options}Answer:" + (f" {row['answer']}\n\n" if answer else "")


def split(rows, name):
    return [row for row in rows if row["split"] == name]


def prompt(source, row, shots=4):
    examples = split(source, "train")[:shots]
    title = TITLE.format(source[0]["subject"])
    return title + "".join(shown(e, answer=True) for e in examples) + shown(row, answer=False)


def chosen(source, row):
    model = tiny_model()
    row_of = model.next(model.tokens(prompt(source, row)))
    return max(LETTERS, key=lambda letter: row_of[model.ids[f" {letter}"]])


def test_every_next_token_has_a_probability_and_they_add_to_one(tasks):
    model = tiny_model()
    tokens = model.tokens(prompt(tasks["young"], tasks["home"][0]) + " naïve\tword Ünder: A:")
    rows = np.array(model.walk(tokens))
    assert rows.shape == (len(tokens) - 1, len(model.vocabulary))
    assert (rows > 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-12)


def test_tokens_join_to_the_text(tasks):
    text = prompt(tasks["young"], tasks["tongue"][1]) + "  B\r\n né 12345 xyzzy(1.5)!"
    assert "".join(tiny_model().tokens(text)) == text


def test_what_comes_later_does_not_change_what_was_before():
    model = tiny_model()
    tokens = model.tokens(
        "What goes with dog?\nAnswer: puppy\n\nWhat goes with cat?\nAnswer: kitten"
    )
    whole = model.walk(tokens)
    for n in (5, len(tokens) - 1):
        np.testing.assert_array_equal(model.next(tokens[:n]), whole[n - 1])


def test_examples_of_the_task_help_and_those_of_its_sister_mislead(tasks):
    names = [name for name in tasks if not name.startswith("open")]
    assert len(names) == 8
    right = np.array(
        [
            [
                np.mean([chosen(tasks[s], row) == row["answer"] for row in split(tasks[t], "test")])
                for t in names
            ]
            for s in names
        ]
    )
    own, other = np.diag(right), right[~np.eye(len(names), dtype=bool)]
    assert own.mean() > 0.75
    assert own.mean() < 1  # it does not know everything
    assert 0.2 < other.mean() < 0.6
    assert right[names.index("young"), names.index("home")] < 0.3
    assert (right.std(axis=0) > 0.05).all()  # each target sees a difference between sources
    assert len(np.unique(right.mean(axis=1))) > 4


def test_tasks_are_as_promised(tasks):
    for rows in tasks.values():
        assert len(split(rows, "train")) == 12
        assert len(split(rows, "test")) >= 12
        assert len({row["question"] for row in rows}) == len(rows)
        for row in rows:
            assert ("options" in row) == (row["answer"] in LETTERS)
    assert {name for name in tasks if name.startswith("open")} == {"open_opposite", "open_capital"}
