"""fewbench plan."""

from fewbench.cli.commands import Call, command
from fewbench.cli.text import echo
from fewbench.study import Plan, SamplePlan
from fewbench.study import plan as make_plan


def _plan(call: Call) -> Plan | SamplePlan:
    """Also print a first answer."""

    def early(first: Plan) -> None:
        echo(f"First answer, from a few held-out models: {first.answer}\nJudging it on others …\n")

    made: Plan | SamplePlan = call(on_first=None if call.given["as_json"] else early)
    return made


plan = command(
    make_plan,
    work="backtesting",
    hidden=["on_first"],
    around=_plan,
    page=lambda found, given: found.page(str(given["scores"]), given["costs"] or "items"),
    examples="""
fewbench plan scores.parquet --error 0.02
fewbench plan scores.parquet --half-width 0.03 --target stronger
fewbench plan scores.parquet --budget 100 -o plan.html
fewbench plan scores.parquet --difference 0.01 --costs tokens
""",
)
