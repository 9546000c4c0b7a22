"""What fewbench transfer measure leaves behind: the matrix, and what is told of it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbench.cli.transfer_text import describe
from fewbench.methods.tasks.transferability import MATRIX

if TYPE_CHECKING:
    from fewbench.transfer.answers import Answers
    from fewbench.transfer.cost import Prices
    from fewbench.transfer.measuring import Run


def report(
    folder: Path,
    settings: dict[str, Any],
    answers: "Answers",
    run: "Run | None",
    prices: "Prices",
    as_json: bool,
    partial: bool,
) -> None:
    """Write the matrix if all is answered, or a part will do, and tell what there is."""
    from fewbench.transfer.journal import kept_header
    from fewbench.transfer.result import notes_on, summary, transferability

    notes = [*(run.notes if run is not None else ()), *notes_on(answers, partial=partial)]
    design = answers.design
    facts: dict[str, Any] = {
        **settings,
        "complete": answers.complete,
        "answers": answers.n_done,
        "asked": len(design),
        "tokens": {"prompt": answers.prompt, "completion": answers.completion},
        "spent": prices.of(answers.prompt, answers.completion),
        "run": None if run is None else vars(run),
        "notes": notes,
    }
    if answers.complete or partial:
        header = kept_header(folder)
        most = max(
            len(design.scored(at, seed)) for at in design.targets for seed in range(design.seeds)
        )
        about = {
            **{key: str(value) for key, value in settings.items()},
            **({} if header is None else header.facts),
            "date": datetime.now(UTC).date().isoformat(),
            "answers": f"{answers.n_done} of {len(design)}",
            "most questions": str(most),
            "notes": "\n".join(notes),
        }
        matrix = transferability(answers, about, partial=partial)
        facts["matrix"] = str(matrix.save(folder / MATRIX))
        facts |= summary(matrix)
    print(json.dumps(facts, ensure_ascii=False) if as_json else describe(facts, folder))
