"""Run a program: items as JSON lines on its input, answers as JSON lines on its output.

For each item the program gets a line such as

    {"item": "mmlu/17", "target": "new", "task": "mmlu", "last": false}

and prints, in any order, a line `{"item": "mmlu/17", "score": 1}`, or
`{"item": "mmlu/17", "error": "…"}` if it cannot answer; `cost` and `tokens` may be added. All items
of a batch are sent at once, and `last` marks the last of them. The program is started once. A line
may be printed again, but not with a different answer. If items are run several times (`--repeats`),
`repeat` is 2 for the second answers, and so on.

No line costs another item its answer. A line that is wrong fails its own item, if it names one; any
other line may be a line of a log, and is only shown.
"""

import json
import os
import queue
import selectors
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import isnan
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, ValidationError

from fewbench._json import first_mistake, loads
from fewbench._names import counted
from fewbench._text import keep_secrets, masked, masked_arguments
from fewbench.errors import RunError
from fewbench.evaluation import Stop
from fewbench.methods import Method
from fewbench.methods.base import AUTO
from fewbench.runners.driving import INTERRUPTED, Answered, OnProgress, Runner, run_with
from fewbench.runners.model_facts import FILES, of_file, of_weights
from fewbench.runners.result import RunResult
from fewbench.scores import Benchmark, Scale, Scores
from fewbench.scores.costs import MOST_COST

PATIENCE = 10.0  # seconds for the program to end after its input has ended
QUIET = 60.0
"""Seconds after which a program that printed other lines than answers may wait for more input."""
LOOK = 0.2  # seconds between looks at whether the program has ended
LONGEST = 1 << 24  # bytes of a line
SHOWN = 5  # other lines that are shown one by one
MOST_TOKENS = 10**15  # of an answer: sums and quotients of so many are finite


def run_command(
    scores: Scores | Benchmark | None,
    method: str | Method = AUTO,
    stop: Stop | int | None = None,
    command: Sequence[str] = (),
    *,
    timeout: float | None = None,
    targets: Sequence[str] | None = None,
    folder: str | Path | None = None,
    on_progress: OnProgress | None = None,
    **settings: Any,
) -> RunResult:
    """Run a program that reads items as JSON lines and prints answers as JSON lines.

    For each line such as `{"item": "q1", "target": "new", "task": "mmlu", "last": false}` the
    program prints a line such as `{"item": "q1", "score": 1}`, in any order; `cost` and `tokens`
    may be added.

    Parameters
    ----------
    scores, method, stop
        As for `fewbench.run`; a number as `stop` is a number of items.
    command : sequence of str
        The program and its arguments, such as `["python", "answer.py"]`.
    timeout : float, optional
        Seconds without a line after which the program is started again.
    targets : sequence of str, optional
        Names of the target models (default: the program's name).
    folder, on_progress
        As for `fewbench.run`.
    **settings
        `items_of`, `batch`, `seed`, `tries`, `repeats`, `average`, `retry_skipped`,
        `accept_fractions` and `accept_changes`, as for `fewbench.run`.

    Raises
    ------
    RunError
        If the program cannot be started, or as for `fewbench.run`.

    Examples
    --------
    >>> import sys
    >>> from fewbench.testing import simulate
    >>> answer = "json.dumps({'item': json.loads(line)['item'], 'score': 1})"
    >>> program = f"import json, sys; [print({answer}, flush=True) for line in sys.stdin]"
    >>> benchmark = simulate(20, 60, seed=1).benchmark
    >>> found = run_command(benchmark, stop=8, command=[sys.executable, "-c", program])
    >>> [target.items_run for target in found.targets.values()]
    [8]
    """
    runner = CommandRunner(command, timeout=timeout)
    return run_with(
        runner, scores, method, stop, folder=folder, targets=targets, on_progress=on_progress,
        **settings,
    )  # fmt: skip


class ProgramLine(BaseModel):
    """A line that the program prints."""

    model_config = ConfigDict(extra="ignore")

    item: str
    score: StrictBool | StrictFloat | None = None
    error: str | None = None
    cost: float | None = Field(default=None, ge=0, le=MOST_COST, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)

    @property
    def answer(self) -> str:
        """The answer in words."""
        if self.score is None:
            return f"error {masked(self.error or '')!r}"
        return f"score {float(self.score):g}"


class CommandRunner(Runner):
    r"""Runs a program that answers items.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; no shell is used. A run resumes only if the files among them are
        unchanged.
    timeout : float, optional
        Seconds without any line after which the program counts as hanging, and is ended.

    Raises
    ------
    RunError
        If there is no program.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> answer = 'import json, sys\nfor line in sys.stdin:\n'
    >>> answer += ' print(json.dumps({"item": json.loads(line)["item"], "score": 1}), flush=True)'
    >>> runner = CommandRunner(["python3", "-c", answer])
    >>> runner.prepare(simulate(5, 9), ["new"])
    []
    >>> runner.answer("new", ["item-3", "item-8"]).answers
    {'item-3': 1.0, 'item-8': 1.0}
    >>> runner.close()
    """

    name = "command"
    reports = ("cost", "tokens")
    batch = 64

    def __init__(self, command: Sequence[str], *, timeout: float | None = None) -> None:
        if not command:
            raise RunError("no program to run", hint="give it after --, as in -- python answer.py")
        script = command[1] if Path(command[0]).stem.startswith("python") and command[1:] else ""
        if script.endswith(".py") and not os.path.isfile(script):
            raise RunError(f"{script}: no such program", hint="give the path of the script")
        if timeout is not None and timeout <= 0:
            raise RunError(f"a timeout of {timeout} seconds", hint="give more than 0")
        self._command, self._timeout = list(command), timeout
        keep_secrets(" ".join(command))
        words = [*command, *_shell_words(command)]
        self.facts = {"program": shlex.join(command)} | _files_of(words)
        self.facts |= of_weights(part for part in _paths(words) if os.path.isdir(part))
        self.model_name = _program_name(command)
        self._program: _Program | None = None
        self._tasks: dict[str, str] = {}
        self._said: dict[str, ProgramLine] = {}  # what it answered to each item when last asked
        self._suspects: list[str] = []  # items on which it died since its last answer
        self._has_answered = False
        self._scale = Scale()
        self._n_other, self._other = 0, ""  # lines that answer nothing, and what the last one was

    def prepare(self, scores: Scores, targets: Sequence[str]) -> list[str]:
        """Start the program; RunError if it cannot be started."""
        self._tasks = {str(item): str(task) for item, task in scores.items["task"].items()}
        self._scale = scores.scale
        self._program = self._program or _Program(self._command)
        return []

    def answer(self, target: str, items: Sequence[str]) -> Answered:
        """Send items and read the answers.

        If the program dies, the first item without an answer counts as failed, and the others are
        sent to a new one. If that dies too before it answers, the run ends.
        """
        reply = Answered(on_answers=self.on_answers)
        left = list(items)
        program: _Program | None = None
        try:
            while left and not reply.is_over:
                program = self._program = self._program or _Program(self._command)
                problem = self._exchange(program, target, left, reply)
                if problem is not None or reply.is_over or program.is_closed:
                    program.end()
                    self._program = None
                    self._take_unread(program, left, reply)
                left = [item for item in left if item not in reply.ended]
                if problem is None or not left:
                    continue
                self._suspects.append(left[0])
                is_item = self._has_answered and len(set(self._suspects)) == 1
                is_mute = not self._has_answered and self._n_other >= len(left)
                if is_mute or (len(self._suspects) > 1 and not is_item):
                    command = masked_arguments(shlex.join(self._command))
                    text = f"the program {command} {problem}"
                    text += "" if is_mute else ", twice in a row"
                    for item in self._suspects:
                        reply.last_failed.pop(item, None)
                    reply.stopped = text
                    break
                reply.add({}, {left.pop(0): f"the program {problem}"})
        except KeyboardInterrupt:
            if program is not None:
                program.end()
                self._take_unread(program, left, reply)
            self._program, reply.stopped = None, INTERRUPTED
        return reply

    def finish(self, result: RunResult) -> list[str]:
        """Close the program's input, read what it still prints, and return notes on that."""
        late = Answered()
        if self._program is not None:
            self._program.end(PATIENCE)
            self._take_unread(self._program, (), late)
            self._program = None
        if (more := self._n_other - SHOWN) > 0:
            late.notes.append(f"{counted(more, 'more line')} of the program like these")
        return late.notes

    def close(self) -> None:
        """End the program at once: what it still does, nobody reads."""
        if self._program is not None:
            self._program.end()

    def _exchange(
        self, program: "_Program", target: str, items: Sequence[str], reply: Answered
    ) -> str | None:
        """Send items and read until all are answered; return what went wrong with the program."""
        lines = [
            {"item": item, "target": target, "task": self._tasks[item], "last": item == items[-1]}
            | ({"repeat": self.repeat} if self.repeat > 1 else {})
            for item in items
        ]
        program.send("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
        for item in items:
            self._said.pop(item, None)
        left, n_other = set(items), 0
        while left and not reply.is_over:
            # Whether it works on or waits for more is not known. Without more input, a program that
            # waits ends, and one that works loses nothing.
            may_wait = n_other >= len(left) and not program.is_closed
            may_wait = may_wait and (self._timeout is None or self._timeout > QUIET)
            text = program.read(QUIET if may_wait else self._timeout)
            if text is not None:
                n_other += not self._take_line(text, left, reply)
            elif may_wait and program.is_quiet:
                program.close_input()
            else:
                return "; ".join(filter(None, (program.problem(), self._other if n_other else "")))
        return None

    def _take_line(self, text: str, left: set[str], reply: Answered) -> bool:
        """Take up a line; return whether it is of an item that is `left`, which then is not."""
        fields = _object(text)
        item = fields.get("item")
        line, mistake = self._parsed(fields, text) if isinstance(item, str) else (None, "")
        if line is None or line.item not in left:
            self._note(self._other_line(line, text), reply)
            return False
        self._note(mistake, reply)
        self._has_answered, self._suspects = True, []
        left.discard(line.item)
        self._said[line.item] = line
        reply.count(line.cost, line.tokens)
        if line.score is None:
            reply.add({}, {line.item: line.error or "no score"})
        else:
            reply.add({line.item: float(line.score)}, {})
        return True

    def _take_unread(self, program: "_Program", items: Iterable[str], reply: Answered) -> None:
        """Take up what the program printed before it ended: it was paid."""
        left = set(items) - reply.ended
        for text in program.unread():
            self._take_line(text, left, reply)

    def _parsed(self, fields: dict[str, Any], text: str) -> tuple[ProgramLine, str]:
        """Return the line of an item, and what is wrong with it: then the item has failed."""
        try:
            line, scale = ProgramLine.model_validate(fields), self._scale
            if line.score is None or scale.low <= line.score <= scale.high or isnan(line.score):
                return line, ""
            mistake = f"score: outside {scale.low:g}..{scale.high:g}"
        except ValidationError as error:
            mistake = first_mistake(error)
            if mistake.startswith("score"):  # of each of its types
                mistake = "score: not a number"
        wrong = f"the program printed {_shown(text)}: {mistake}"
        line = ProgramLine(item=fields["item"], error=wrong)
        with suppress(ValidationError):  # what it cost was spent
            spent = {name: fields[name] for name in ("cost", "tokens") if name in fields}
            line = ProgramLine.model_validate({"item": fields["item"], "error": wrong} | spent)
        return line, wrong

    def _other_line(self, line: ProgramLine | None, text: str) -> str:
        """Return what the user is to know of a line that answers nothing, "" if nothing."""
        if line is None:
            return (
                f"the program printed {_shown(text)}, which is not an answer: print answers as "
                '{"item": "…", "score": 1}, and a log on standard error'
            )
        if (before := self._said.get(line.item)) is None:
            return f"the program answered the item {masked(line.item)!r}, which was not requested"
        if before.score == line.score:
            return ""
        return (
            f"the program gave the item {line.item!r} two answers: {before.answer}, then "
            f"{line.answer}. The first counts; to have items answered several times, pass "
            "--repeats; fewbench tell --correct replaces an answer"
        )

    def _note(self, note: str, reply: Answered) -> None:
        """Show what is wrong with a line, of many the first ones."""
        if note:
            self._n_other, self._other = self._n_other + 1, note
            if self._n_other <= SHOWN:
                reply.note(note)


def _program_name(command: Sequence[str]) -> str:
    """Return the name of the script that a command runs, or of its program, without its ending.

    >>> _program_name(["/bin/sh", "-c", "exit"])
    'sh'
    """
    scripts = [word for word in command[1:] if not word.startswith("-") and os.path.isfile(word)]
    return Path([*scripts, command[0]][0]).stem


def _files_of(words: Iterable[str]) -> dict[str, str]:
    """Return what the files that a command names contain, also in --OPTION=FILE and sh -c "…"."""
    return {FILES + path: of_file(Path(path)) for path in _paths(words) if os.path.isfile(path)}


def _paths(words: Iterable[str]) -> list[str]:
    """Return the files and folders that words of a command name."""
    pairs = ((word, word.partition("=")[2]) for word in words)
    paths = (next((part for part in pair if part and os.path.exists(part)), "") for pair in pairs)
    return [path for path in paths if path]


def _shell_words(command: Sequence[str]) -> list[str]:
    """Return the words of a shell's -c "…", without files that it writes.

    >>> _shell_words(["bash", "-c", "cd tasks && python 'my agent.py' > log"])
    ['cd', 'tasks', '&&', 'python', 'my agent.py', '>']
    """
    if not (Path(command[0]).stem.endswith("sh") and "-c" in command[1:-1]):
        return []
    lexer = shlex.shlex(command[command.index("-c") + 1], posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    with suppress(ValueError):  # a quote that does not end
        words = list(lexer)
        before = ["", *words]
        return [word for word, last in zip(words, before, strict=False) if ">" not in last]
    return []


def _object(text: str) -> dict[str, Any]:
    """Return the JSON object in a line, {} if it has none."""
    try:
        value = loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _shown(text: str) -> str:
    return repr(masked(text.strip())[:80])


class _Program:
    """A running program, whose lines a thread reads."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            # In a group of its own: Ctrl-C is for fewbench, which then ends the program.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise RunError(
                f"cannot start {command[0]}: {error.strerror}",
                hint="give a program and its arguments after --, as in -- python answer.py",
            ) from error
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.is_quiet = self.is_closed = False
        self._waited = 0.0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        line = bytearray()
        for part in self._parts():
            *ends, rest = part.split(b"\n")
            for end in ends:
                self._put(line + end)
                line.clear()
            line += rest[: LONGEST - len(line)]
        self._put(line)
        self._lines.put(None)

    def _parts(self) -> Iterator[bytes]:
        """Yield what the program prints, until it has ended: a child of it may hold its output."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                has_ended = self._process.poll() is not None
                if selector.select(LOOK):
                    if not (part := self._process.stdout.read(1 << 16)):
                        return
                    yield part
                elif has_ended:
                    return

    def _put(self, line: bytes | bytearray) -> None:
        if text := line.decode("utf-8", errors="replace").strip():
            self._lines.put(text)

    def send(self, text: str) -> None:
        """Write to the program's input; that of a dead program goes nowhere."""
        assert self._process.stdin is not None
        data = memoryview(text.encode())
        with suppress(OSError):
            while data:
                data = data[self._process.stdin.write(data) :]

    def read(self, timeout: float | None) -> str | None:
        """Return the next line, or None if the program has ended or, `is_quiet`, printed none."""
        self.is_quiet = False
        try:
            return self._lines.get(timeout=timeout)
        except queue.Empty:
            self.is_quiet, self._waited = True, timeout or 0.0
            return None

    def unread(self) -> Iterator[str]:
        """Yield the lines that came and were not read yet."""
        with suppress(queue.Empty):
            while (text := self._lines.get_nowait()) is not None:
                yield text

    def problem(self) -> str:
        """Return what happened to the program, in words."""
        if self.is_quiet:
            return f"printed nothing for {self._waited:g} s (--timeout)"
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        code = self._process.returncode
        if code is None:
            return "closed its output"
        return f"ended with exit code {code}" if code >= 0 else f"died by signal {-code}"

    def close_input(self) -> None:
        """Say that no more items follow."""
        self.is_closed = True
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]

    def end(self, patience: float = 0.0) -> None:
        """Close the input, wait, then end the program and what it started."""
        self.close_input()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with suppress(OSError):
                    os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience if number is None else 1.0)
                break
        self._reader.join(1.0)
        if not self._reader.is_alive():
            self._process.stdout.close()  # type: ignore[union-attr]
