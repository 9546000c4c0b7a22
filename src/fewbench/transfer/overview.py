"""What a design makes of each task, and a prompt as it will be asked."""

from typing import Any

from fewbench.transfer.design import Design


def overview(design: Design) -> list[dict[str, Any]]:
    """Return, of each task, how many questions are what.

    `questions` are all of the task, of which `aside` are set aside as exemplars and `left_out` not
    scored for they equal exemplars; `pool` is what exemplars are drawn from besides; `target` says
    whether the task is a column.

    Examples
    --------
    >>> from fewbench.transfer.task import Question, Task
    >>> from fewbench.transfer.templates import TEMPLATES
    >>> def task(name):
    ...     asked = [Question(id=f"{n}", text=f"{name} {n}?", answer="yes") for n in range(8)]
    ...     return Task(name=name, subject=name, questions=asked)
    >>> design = Design((task("a"), task("b")), TEMPLATES["flan"], "loss", seeds=2, exemplars=2)
    >>> overview(design)[0]
    {'name': 'a', 'questions': 8, 'pool': 0, 'aside': 4, 'left_out': 0, 'target': True}
    """
    return [
        {
            "name": task.name,
            "questions": len(task.questions),
            "pool": len(task.pool),
            "aside": design.aside[task.name],
            "left_out": len(design.left_out.get(task.name, ())),
            "target": at in design.targets,
        }
        for at, task in enumerate(design.tasks)
    ]


def example(design: Design) -> str:
    """Return the prompt of the first target's first question behind another task's exemplars."""
    target = design.targets[0]
    source = next(at for at in range(len(design.tasks)) if at != target)
    return design.prompt(design.request(design.first(0, source, target)))
