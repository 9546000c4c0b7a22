"""Numbers in the charts of a selection are those of the selection."""

from inspect import getmembers, isfunction

from fewbench_papers.bento.charts import task_sets
from fewbench_papers.bento.page import tasks_page

from ...show import test_chart_numbers as numbers
from .test_tasks_page import made


def of_selection(selection):
    """What is judged, and the spread of random choices about their mean."""
    judged = selection["judgement"]
    random = [
        {"name": of} | judged[of.replace(" ", "_")] for of in ("random tasks", "random questions")
    ]
    ends = {"low": -1, "high": 1}
    random = [of | {key: of["mean"] + s * of["spread"] for key, s in ends.items()} for of in random]
    return {"judgement": [selection, *random]}


def test_charts_of_tasks():
    selection, code = made(), set()
    special = of_selection(selection)
    found = [
        ("tasks", section, rows, special.get(section) or selection)
        for section, rows in numbers.drawn(tasks_page(selection), code)
    ]
    numbers.test_each_row_of_a_chart_is_of_one_record((found, code, {}))
    makers = [f for _, f in getmembers(task_sets, isfunction)]
    makers = [f for f in makers if f.__annotations__["return"] in ("Any", "Any | None")]
    assert {f.__name__ for f in makers if f.__code__ not in code} == set()
