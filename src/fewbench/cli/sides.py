"""What `versus` and `gate` compare, as named on the command line."""

from pathlib import Path

from fewbench.cli.options import open_evaluation
from fewbench.evaluation import Evaluation
from fewbench.evaluation.journal import HEADER

Named = Evaluation | tuple[Evaluation, str] | str
ONE_LOOK = (
    "note: this result counts one look only. If you look again after these items, pass "
    "--sequential at every look"
)


class Sides:
    """Reads names: an evaluation's folder, DIR:TARGET, or a model.

    Parameters
    ----------
    scores : Path, optional
        Scores file, if it was moved.
    """

    def __init__(self, scores: Path | None) -> None:
        self._scores = scores
        self._opened: dict[Path, Evaluation] = {}

    def read(self, name: str) -> Named:
        """Return the evaluation, the evaluation and its target, or the name itself."""
        if _is_evaluation(Path(name)):
            return self.open(Path(name))
        folder, colon, target = name.partition(":")
        while colon:  # names of targets and folders may hold colons
            if target and _is_evaluation(Path(folder)):
                return self.open(Path(folder)), target
            more, colon, target = target.partition(":")
            folder = f"{folder}:{more}"
        return name

    def open(self, folder: Path) -> Evaluation:
        """Open an evaluation's folder, once."""
        key = folder.resolve()
        if key not in self._opened:
            self._opened[key] = open_evaluation(folder, self._scores)
        return self._opened[key]


def _is_evaluation(folder: Path) -> bool:
    return (folder / HEADER).is_file()
