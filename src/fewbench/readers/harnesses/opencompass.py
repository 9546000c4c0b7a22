"""OpenCompass: STAMP/results/MODEL/DATASET.json, with the predictions and configs beside."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewbench._names import some
from fewbench.errors import ReaderError
from fewbench.readers.harness import Unit, Wants
from fewbench.readers.harnesses._opencompass.files import (
    PIECE,
    STAMP,
    Config,
    Place,
    configured,
    moved,
    place_of,
)
from fewbench.readers.harnesses._opencompass.items import (
    Item,
    pair_up,
    read_predictions,
    read_results,
)
from fewbench.readers.harnesses._opencompass.scores import METRIC, scores_of
from fewbench.readers.identity import content_id
from fewbench.readers.run import UNKNOWN, Rows, Run


class OpenCompass:
    """What OpenCompass writes below its work folder, 0.2 to 0.5.

    The scores are `correct` of the evaluation's details, 0 or 1 whatever the percentages of the
    summary; the mean of it where an item was run several times. OpenCompass has no name for an
    item but its place in the dataset, so an item is known by its prompt (for tasks by perplexity
    by the prompts of all its options). Results by perplexity carry the options: their
    log-likelihood per token is the negative of what OpenCompass calls PPL.
    """

    name = "opencompass"
    files = "results/MODEL/DATASET.json with details, as --dump-eval-details writes them"

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the results among files, and predictions that were never evaluated."""
        found: dict[Path, Unit] = {}
        for path in files:
            place = place_of(path)
            if place is None:
                continue
            if place.part == "predictions":
                place = _evaluated(place)
            results = place.beside("results", place.task)
            beside = place.predictions()
            unit = path if place.part == "results" else results if results.is_file() else beside[0]
            if unit not in found:
                others = [one for one in beside if one != unit]
                found[unit] = Unit(unit, (*others, *place.configs()))
        return list(found.values())

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return the run that a results file is."""
        path = unit.path
        place = place_of(path) or moved(path)  # moved, if it was named with its form
        beside = [one for one in unit.beside if one.suffix == ".json"]
        if place.part == "predictions":
            place = _evaluated(place)
            results: dict[str, Any] = {}
            items = [Item({}, one) for one in read_predictions([path, *beside])]
        else:
            results = read_results(path)
            items = pair_up(path, results, read_predictions(beside))
        if not items:
            raise ReaderError(f"{path}: empty, no answer was logged", hint="delete it")
        config = configured(tuple(one for one in unit.beside if one.suffix == ".py"), place)
        return [_run(path, place, items, scores_of(path, items, results), config, wants)]


def _evaluated(place: Place) -> Place:
    """Return the place of predictions without the number of a piece."""
    piece = PIECE.fullmatch(place.task)
    if piece is None or place.beside("results", place.task).is_file():
        return place
    whole = place._replace(task=piece[1])
    is_piece = whole.beside("results", whole.task).is_file() or len(whole.predictions()) > int(
        piece[2]
    )
    return whole if is_piece and whole.predictions() else place


def _run(
    path: Path,
    place: Place,
    items: list[Item],
    scored: tuple[list[Any], list[str]],
    config: Config,
    wants: Wants,
) -> Run:
    scores, notes = scored
    rows = Rows(path, place_word="entry")
    first, nameless, unscored = config.first(), 0, []
    for at, (item, score) in enumerate(zip(items, scores, strict=True)):
        if score is None:
            unscored.append(at)
            continue
        position = item.position
        if position == UNKNOWN and first != UNKNOWN:
            position = first + at
        prompts = item.prompts
        content = content_id(*prompts) if prompts else f"{at if position < 0 else position}"
        nameless += not prompts
        rows.append(
            item.field(wants.key, f"{path}, entry {at + 1}") if wants.key else content,
            score,
            at + 1,
            position=position,
            prompt="\n".join(prompts),
            options=item.options,
        )
    if unscored:
        notes.append(f"{len(unscored)} items have no score and are left out: {some(unscored)}")
    if nameless and not wants.key:
        notes.append(
            f"{nameless} items have no prompt and are known by their place; put the folder "
            "of predictions beside that of the results"
        )
    whole = config.known and not config.test_range
    if config.test_range:
        notes.append(f"a part of the task was run: test_range is {config.test_range!r}")
    work = place.work.absolute()
    stamped = STAMP.fullmatch(work.name)
    return rows.run(
        place.model,
        place.task,
        stamp=work.name if stamped else "",
        group=str(work.parent if stamped else work),
        total=len(items) if whole else None,
        ran=len(items) - len(unscored),
        settings=config.settings,
        higher_is_better={METRIC: True},
        notes=tuple(notes),
    )
