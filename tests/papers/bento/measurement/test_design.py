"""What is asked: exemplars are never scored, and what is added leaves earlier draws alone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import TransferError
from fewbench.runners.questions import Question
from fewbench_papers.bento.measurement.design import Design
from fewbench_papers.bento.measurement.prompts import MeasuredTask
from fewbench_papers.bento.measurement.templates import TEMPLATES


def question(name, at, answer=0):
    return Question(id=at, text=f"{name} {at}?", options=("yes", "no"), answer=answer)


@st.composite
def tasks(draw, least=2):
    """Tasks of different sizes, some with a pool, some of whose texts are another's."""
    names = draw(st.lists(st.sampled_from("abcdefgh"), min_size=least, max_size=5, unique=True))
    made = []
    for name in names:
        pool = draw(st.sampled_from([0, 2, 3, 7]))
        number = draw(st.integers(9, 20))
        made.append(
            MeasuredTask(
                name=name,
                subject=name,
                questions=tuple(question(name, f"q{at}") for at in range(number)),
                pool=tuple(question(name, f"p{at}") for at in range(pool)),
            )
        )
    return tuple(made)


def designed(made, **settings):
    given = {"seeds": 2, "exemplars": 2, "questions": 3} | settings
    return Design(made, TEMPLATES["mmlu"], **given)


def asked(design):
    """All that is asked, by names."""
    return [
        (r.seed, design.names[r.source], design.names[r.target], design.question(r).id)
        for r in design.requests()
    ]


def shown(design):
    return {
        (name, seed): [e.id for e in design.exemplars_of(at, seed)]
        for at, name in enumerate(design.names)
        for seed in range(design.seeds)
    }


@given(tasks(), st.integers(1, 15), st.integers(0, 3))
def test_exemplars_are_never_scored(made, seeds, seed):
    design = designed(made, seeds=seeds, seed=seed, questions=None)
    exemplars = {
        e.content
        for at in range(len(made))
        for s in range(seeds)
        for e in design.exemplars_of(at, s)
    }
    scored = {design.question(r).content for r in design.requests()}
    assert scored
    assert not scored & exemplars
    for (_, _), ids in shown(design).items():
        assert len(set(ids)) == 2


@given(tasks(), st.data())
def test_not_even_those_that_other_tasks_share(made, data):
    """Questions of one task are in another's pool, under other names."""
    copied = data.draw(st.sets(st.integers(0, 8), min_size=1, max_size=6))
    twins = [made[0].questions[at].model_copy(update={"id": f"twin{at}"}) for at in copied]
    pool = (*made[1].pool, *twins, question("x", "x1"), question("x", "x2"))
    design = designed((made[0], made[1].model_copy(update={"pool": pool})), seeds=4, questions=None)
    scored = {design.question(r).content for r in design.requests()}
    assert not scored & {twin.content for twin in twins}


@given(tasks(), st.integers(1, 8), st.integers(1, 8))
def test_a_larger_cap_holds_the_smaller_one(made, a, b):
    few, many = (designed(made, questions=n) for n in sorted((a, b)))
    assert set(asked(few)) <= set(asked(many))
    assert shown(few) == shown(many)


@given(tasks(least=3), st.data())
def test_what_is_added_changes_nothing_else(made, data):
    design = designed(made)
    longer = replace(design, seeds=5)
    assert [one for one in asked(longer) if one[0] < 2] == asked(design)
    names = data.draw(st.lists(st.sampled_from(design.names), min_size=1, unique=True))
    some = replace(design, columns=tuple(names))
    assert asked(some) == [one for one in asked(design) if one[2] in names]
    fewer = replace(design, tasks=made[1:])
    kept = set(fewer.names)
    assert asked(fewer) == [one for one in asked(design) if {one[1], one[2]} <= kept]
    turned = replace(design, tasks=made[::-1])
    assert set(asked(turned)) == set(asked(design))
    assert shown(turned) == shown(design)


def test_sets_that_are_set_aside_share_nothing_as_long_as_they_last(task):
    design = designed((task("a", 30), task("b", 8)), seeds=6, sets=4, questions=None)
    a = [{e.id for e in design.exemplars_of(0, seed)} for seed in range(6)]
    assert len(set.union(*a[:4])) == 8
    assert set.union(*a) == set.union(*a[:4])
    assert len(design.scored(0, 0)) == 22
    # half of the small task is set aside, and not more
    assert len(design.scored(1, 0)) == 4
    assert "12 questions of 2 tasks" in " ".join(design.notes)


def test_a_number_of_columns_takes_the_shortest_questions(task):
    made = (task("a", text="{name}" + "x" * 50 + "{at}"), task("b"), task("cc"), task("d"))
    design = designed(made, columns=2)
    assert [design.names[at] for at in design.targets] == ["b", "d"]


def test_questions_that_equal_exemplars_are_left_out_and_named(task):
    a, b = task("a", 12, pool=4), task("b", 12, pool=4)
    first = b.questions[3]
    twin = Question(id="twin", text=f" {first.text} ", options=first.options[::-1], answer=0)
    a = a.model_copy(update={"pool": (*a.pool, twin)})
    design = designed((a, b), questions=None)
    assert design.left_out == {"b": ("3",)}
    assert "3" not in {one[3] for one in asked(design) if one[2] == "b"}
    assert len(design.scored(1, 0)) == 11
    assert any("b: not scored" in note and "'3'" in note for note in design.notes)


def test_a_task_that_is_all_exemplars_is_refused(task):
    a = task("a", 6)
    pool = tuple(q.model_copy(update={"id": f"x{q.id}"}) for q in a.questions)
    copied = a.model_copy(update={"pool": pool})
    with pytest.raises(TransferError, match=r"'a'.*6 questions"):
        designed((copied, task("b")))
    assert len(designed((copied, task("b")), columns=("b",)))


def test_pools_that_are_no_larger_than_a_draw_are_noted(task):
    design = designed((task("a", 9, pool=2), task("b", 9, pool=3)), seeds=4)
    assert any("'a'" in note and "differ only in their order" in note for note in design.notes)
    assert not any("'b'" in note for note in design.notes)


def test_seeds_that_must_share_exemplars_are_noted(task):
    made = task("a", 30), task("b", 8), task("c", 9, pool=5)
    (note,) = [n for n in designed(made, seeds=6).notes if "share" in n]
    assert note.endswith("for 6 seeds, so some seeds share exemplars: 'b'")
    assert not any("share" in note for note in designed(made, seeds=2).notes)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"metric": "f1"}, "unknown metric 'f1'"),
        ({"seeds": 0}, "seeds 0 is too low"),
        ({"exemplars": 0}, "exemplars 0 is too low"),
        ({"questions": 0}, "questions 0 is too low"),
        ({"seed": -1}, "seed -1 is too low"),
        ({"columns": 4}, "columns 4 does not fit 3 tasks"),
        ({"columns": 0}, "columns 0 does not fit"),
        ({"columns": ("a", "x")}, "unknown tasks: 'x'"),
        ({"columns": ()}, "columns names no task"),
        ({"exemplars": 7}, "'a' has 12 questions and no pool.*7 aside needs 14 questions"),
    ],
)
def test_what_cannot_be_designed_is_refused(design, settings, said):
    with pytest.raises(TransferError, match=said):
        design(**settings)


def test_tasks_that_do_not_do_are_refused(design, task):
    with pytest.raises(TransferError, match="'a'"):
        design("aa")
    with pytest.raises(TransferError, check=lambda error: error.kind == "too-few"):
        design("a")
    with pytest.raises(TransferError, match=r"'a'.*1 question.*2 exemplars.*--exemplars 1"):
        design(tasks=[task("a", 9, pool=1), task("b")])
    with pytest.raises(TransferError, match="'b'"):
        design(tasks=[task("a"), task("b", options=())])
    assert len(design(tasks=[task("a"), task("b", options=())], columns=("a",)))
    assert len(design(tasks=[task("a"), task("b", options=())], metric="loss"))


def test_draws_do_not_depend_on_the_order_of_a_file(task):
    a, b = task("a", 20, pool=9), task("b", 20)
    mixed = [
        t.model_copy(update={"questions": t.questions[::-1], "pool": t.pool[::-1]}) for t in (a, b)
    ]
    assert asked(designed((a, b))) == asked(designed(tuple(mixed)))
    assert shown(designed((a, b))) == shown(designed(tuple(mixed)))
