"""Every block of code in the documentation: run, or checked where it cannot run here.

- Python blocks of a page run in order, in a folder of the page's own. A block that begins with
  `# NAME.py` is written to that file; `# src/…` is also imported, as the module it would be.
- Commands (`fewbench …`) of a block without a language, or `sh`, run in the same folder.
- `<!-- not run: REASON -->` on the line before a block: its commands are checked, not run. So are
  commands with words to fill in (FOLDER, NAME, …), those of the methods' pages, whose methods run
  in the conformance tests.
- Checked means: the command and its options exist, methods can be read, Python compiles. Scripts
  and make targets that a page names exist.

- A block of `text` is what the command or the Python block before it prints: in README.md, and on
  a page with `<!-- compared -->`, where it may show only the first lines.

The folder of a page holds scores.parquet (a part of the bundled table), items.csv (its items),
logs/ (lm-eval's, of two made-up models), results.csv (one model's answers) and answer.py (the
same, as a program). Python blocks know `fewbench`, `scores`, `run_my_model` and `my_harness`.
That of README.md holds what `fewbench demo` writes, and its Python blocks know nothing.
"""

import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import fewbench
from fewbench.cli import main
from fewbench.cli.app import COMMANDS, load_command
from fewbench.datasets import load_zoo, write_example
from fewbench.errors import MethodError
from fewbench.methods import StaticMethod, Subset
from fewbench.methods.selection.random import Random
from fewbench.readers.harnesses import HARNESSES
from fewbench.testing import simulate
from fewbench.testing.conformance import MethodConformance
from fewbench.testing.printed import same_printed

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), README, ROOT / "CONTRIBUTING.md"]
FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^ *```$", re.M | re.S)
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*\Z")
TO_FILL_IN = re.compile(
    r"(?<![\w$.-])(DATASET|DIR|FILE|FOLDER|ID|LOGS|METHOD|NAME|ORG|PACKS|URL|X)(?!\w)|…"
)
COMPARED = "<!-- compared -->"
SHELL = {"", "sh", "bash", "console"}
ENDS = {"gate": {0, 1, 3}, "verify": {0, 1}}  # exit codes that say something of the model
MODEL = "ridge-edges/13"
FEW = load_zoo().take(models=range(2, 280, 4), items=range(0, 1000, 2))

ANSWER = """
import csv, json, sys

correct = {row["id"]: float(row["correct"]) for row in csv.DictReader(open("results.csv"))}
for line in sys.stdin:
    item = json.loads(line)["item"]
    print(json.dumps({"item": item, "score": correct[item]}), flush=True)
"""


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    reason: str | None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """Name of the file that the block is, by its first line."""
        found = re.match(r"# (\S+\.py)\n", self.text)
        return found and found[1]

    def commands(self) -> list[str]:
        """Return the commands, one a line, without comments; none in what a program prints."""
        lines = self.text.replace("\\\n", " ").splitlines()
        first = ("fewbench ", "python ", "make ", "pip ", "hf ", "inspect ", "lm_eval ", "git ")
        return [line.strip() for line in lines if line.strip().startswith(first)]


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        marked = NOT_RUN.search(text, 0, match.start())
        lines = [line.removeprefix(match[1]) for line in match[3].splitlines(keepends=True)]
        at = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, at, match[2], "".join(lines), marked and marked[1]))
    return found


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


WITH_BLOCKS = [page for page in PAGES if blocks_of(page)]


@pytest.fixture(scope="session")
def kit(tmp_path_factory) -> Path:
    """The files that pages speak of."""
    folder = tmp_path_factory.mktemp("kit")
    row = FEW.values[list(FEW.model_ids).index(MODEL)]
    rest = [at for at, name in enumerate(FEW.model_ids) if not name.startswith("ridge-edges/")]
    few = FEW.take(models=rest[::3], items=range(0, FEW.n_items, 3))
    fewbench.save_scores(few, folder / "scores.parquet")
    correct = row[FEW.positions(few.item_ids)]
    told = [f"{item},{score:g}" for item, score in zip(few.item_ids, correct, strict=True)]
    (folder / "results.csv").write_text("\n".join(["id,correct", *told]) + "\n")
    (folder / "items.csv").write_text("\n".join(["id", *few.item_ids]) + "\n")
    (folder / "answer.py").write_text(ANSWER)
    shutil.copytree(ROOT / "tests/readers/fixtures/lm_eval/0.4.13/out", folder / "logs")
    return folder


@pytest.fixture
def folder(kit, tmp_path, monkeypatch) -> Path:
    shutil.copytree(kit, tmp_path / "page")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)  # as activated
    monkeypatch.setattr("fewbench.datasets.load_zoo", lambda: FEW)  # a quarter of the time
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # small work: processes would cost more
    monkeypatch.chdir(tmp_path / "page")
    return tmp_path / "page"


@pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning")  # of Inspect
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=page_name)
def test_blocks_run(page, folder, monkeypatch, capsys):
    names, printed = None, ""
    is_compared = page == README or COMPARED in page.read_text(encoding="utf-8")
    if page == README:
        write_example(folder)
    for block in blocks_of(page):
        if block.reason:
            continue
        if block.language == "python":
            names = names or ({} if page == README else _names(folder))
            if block.file:
                (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
                (folder / block.file).write_text(block.text)
                if block.file.startswith("src/"):
                    names |= vars(_imported(folder / block.file, monkeypatch))
                continue
            try:
                exec(compile(block.text, block.place, "exec"), names)
            except Exception as error:
                pytest.fail(f"{block.place}: {type(error).__name__}: {error}")
            printed = capsys.readouterr().out
        elif block.language in SHELL and not _is_checked_only(page):
            for line in block.commands():
                if line.startswith("fewbench ") and not TO_FILL_IN.search(uncommented(line)):
                    printed = _run(line, block.place, monkeypatch, capsys)
        elif block.language == "text" and is_compared:
            shown = printed.splitlines(keepends=True)
            begins = "".join(shown[: len(block.text.splitlines())]) if page != README else printed
            same = same_printed(block.text, begins)
            assert same, f"{block.place}: the command prints another text:\n{printed}"


def _imported(path: Path, monkeypatch) -> ModuleType:
    """Import a file as the module that it would be in the package."""
    name = ".".join(path.with_suffix("").parts[path.parts.index("src") + 1 :])
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_the_templates_are_a_method_and_a_reader(folder, monkeypatch):
    """The method of CONTRIBUTING passes the conformance suite; the reader reads a log."""
    found = {block.file: block for block in blocks_of(ROOT / "CONTRIBUTING.md") if block.file}
    modules = {}
    for name, block in found.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(block.text)
        if name.startswith("src/"):
            modules[Path(name).stem] = _imported(folder / name, monkeypatch)
    words = [
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "-q",
        "--import-mode=importlib",
    ]
    assert (
        pytest.main([*words, "--rootdir", str(folder), str(folder / "tests/test_shifted.py")]) == 0
    )
    # What the tests of the catalogue ask of a part: exact with all items, and numbers checked.
    shifted = modules["shifted"].Shifted
    promises = MethodConformance()
    promises.exact = True
    promises.test_all_items_give_the_full_score(StaticMethod(Random(), shifted()))
    with pytest.raises(MethodError, match="strength is nan"):
        shifted(float("nan")).fit(simulate(4, 8), Subset(items=("item-0",)), 0)
    monkeypatch.setitem(HARNESSES, "toy-eval", modules["toy_eval"].ToyEval())
    for model, right in {"a": 1, "b": 0}.items():
        answers = [
            {"question": f"{n} + {n} =", "target": str(2 * n), "correct": right} for n in (1, 2)
        ]
        log = {"toy_eval": 1, "model": model, "task": "sums", "answers": answers}
        (folder / f"{model}.json").write_text(json.dumps(log))
    read = fewbench.import_results([folder / "a.json", folder / "b.json"]).scores
    assert read.values.tolist() == [[1, 1], [0, 0]]


def _is_checked_only(page: Path) -> bool:
    return page.parent.name == "methods"


def _names(folder: Path) -> dict:
    correct = dict(line.split(",") for line in (folder / "results.csv").read_text().split()[1:])

    def run_my_model(item: str) -> float:
        return float(correct[item])

    return {
        "__name__": "page",
        "fewbench": fewbench,
        "scores": fewbench.load_scores(folder / "scores.parquet"),
        "run_my_model": run_my_model,
        "my_harness": lambda items: {item: run_my_model(item) for item in items},
    }


def _run(line: str, place: str, monkeypatch, capsys) -> str:
    """Run a command and return what it prints."""
    words = shlex.split(line, comments=True)
    words = [word for word in words if word]
    output = None
    if ">" in words:
        words, output = words[: words.index(">")], words[words.index(">") + 1]
    monkeypatch.setattr("sys.argv", words)
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_:
        main()
    said = capsys.readouterr()
    if output:
        Path(output).write_text(said.out)
    assert (exit_.value.code or 0) in ENDS.get(words[1], {0}), f"{place}: {line}\n{said.err}"
    return said.out


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=page_name)
def test_blocks_name_what_exists(page):
    for block in blocks_of(page):
        if block.language == "python":
            compile(block.text, block.place, "exec")
        elif block.language in SHELL:
            for line in block.commands():
                try:
                    _check(shlex.split(line, comments=True))
                except AssertionError as error:
                    pytest.fail(f"{block.place}: {line}: {error}")


def uncommented(line: str) -> str:
    return shlex.join(shlex.split(line, comments=True))


def _check(words: list[str]) -> None:
    """Check a command by the program's own parser, and what it names of the repository."""
    program, rest = words[0], words[1:]
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert set(rest) <= set(targets), f"no target among {targets}"
    elif program == "python" and rest[0].startswith(("scripts/", "benchmarks/")):
        assert (ROOT / rest[0]).is_file(), f"no {rest[0]}"
    elif program == "fewbench" and rest[0] not in {"--version", "--install-completion"}:
        assert rest[0] in COMMANDS, f"no command {rest[0]}"
        command, rest = load_command(rest[0]), rest[1:]
        context = command.make_context(words[0], [], resilient_parsing=True)
        try:
            while getattr(command, "commands", None):
                _, command, rest = command.resolve_command(context, rest)
            values, _, _ = command.make_parser(context).parse_args(rest)
        except Exception as error:  # the parser's own: no such command, no such option
            raise AssertionError(error) from error
        _check_methods(values)


def _check_methods(values: dict) -> None:
    """Read the methods of `compare`, `start` and `select`, but for files that they name."""
    given = values.get("methods") or []
    for spec in [given] if isinstance(given, str) else given:
        for one in re.split(r",(?![^(]*\))", spec):
            if "=" not in one or not re.search(r"\.np[zy]", one):
                fewbench.find_method(one.strip())


def test_reasons_are_few():
    """What is not run is listed by `pytest -s`; a page gives a reason for each."""
    marked = [block for page in PAGES for block in blocks_of(page) if block.reason]
    for block in marked:
        print(f"{block.place}: {block.reason}")
    everything = sum(len(blocks_of(page)) for page in PAGES)
    assert len(marked) < everything / 3
