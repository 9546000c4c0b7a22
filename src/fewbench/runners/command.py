"""Run a program: items as JSON lines on its input, answers as JSON lines on its output.

For each item the program gets a line such as

    {"item": "mmlu/17", "target": "new", "task": "mmlu", "last": false}

and prints, in any order, a line `{"item": "mmlu/17", "score": 1}`, or
`{"item": "mmlu/17", "error": "…"}` if it cannot answer; `cost` and `tokens` may be added. All items
of a batch are sent at once, and `last` marks the last of them. The program is started once. A line
may be printed again, but not with a different answer. If items are run several times (`--repeats`),
`repeat` is 2 for the second answers, and so on.
"""

import json
import os
import queue
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat

from fewbench._json import loads
from fewbench._text import keep_secrets, masked, masked_arguments
from fewbench.errors import RunError
from fewbench.runners.driving import INTERRUPTED, Answered, Runner
from fewbench.runners.model_facts import FILES, of_file, of_weights
from fewbench.runners.result import RunResult
from fewbench.scores import Scores

PATIENCE = 10.0  # seconds for the program to end after its input has ended


class ProgramLine(BaseModel):
    """A line that the program prints."""

    model_config = ConfigDict(extra="ignore")

    item: str
    score: StrictBool | StrictFloat | None = None
    error: str | None = None
    cost: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    tokens: int = Field(default=0, ge=0)

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
        Later also if the program prints a line that is not an answer, answers an item that was not
        requested, or gives an item two different answers.

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

    def prepare(self, scores: Scores, targets: Sequence[str]) -> list[str]:
        """Start the program; RunError if it cannot be started."""
        self._tasks = {str(item): str(task) for item, task in scores.items["task"].items()}
        self._program = _Program(self._command)
        return []

    def answer(self, target: str, items: Sequence[str]) -> Answered:
        """Send items and read the answers.

        If the program dies, the first item without an answer counts as failed, and the others are
        sent to a new one. If that dies too before it answers, the run ends.
        """
        reply = Answered(on_answers=self.on_answers)
        left = list(items)
        try:
            while left:
                assert self._program is not None
                problem = self._exchange(self._program, target, left, reply)
                ended = reply.ended
                left = [item for item in left if item not in ended]
                if problem is None:
                    continue
                self._program.end()
                self._suspects.append(left[0])
                is_item = self._has_answered and len(set(self._suspects)) == 1
                if len(self._suspects) > 1 and not is_item:
                    command = masked_arguments(shlex.join(self._command))
                    text = f"the program {command} {problem}, twice in a row"
                    for item in self._suspects:
                        reply.last_failed.pop(item, None)
                    reply.stopped = text
                    break
                reply.add({}, {left.pop(0): f"the program {problem}"})
                self._program = _Program(self._command)
        except KeyboardInterrupt:
            if self._program is not None:
                self._program.end()
            reply.stopped = INTERRUPTED
        return reply

    def finish(self, result: RunResult) -> None:
        """Close the program's input, and read what it still prints: no answer may differ."""
        assert self._program is not None
        self._program.end(PATIENCE)
        for text in self._program.unread():
            with suppress(ValueError):
                self._check_again(ProgramLine.model_validate(loads(text)))

    def close(self) -> None:
        """Close the program's input, and end it if it does not end by itself."""
        if self._program is not None:
            self._program.end(PATIENCE)

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
        left = set(items)
        for item in items:
            self._said.pop(item, None)
        while left:
            text = program.read(self._timeout)
            if text is None:
                return program.problem()
            line = _parsed(text)
            if line.item in left:
                reply.cost += line.cost
                reply.tokens += line.tokens
                if line.score is None:
                    reply.add({}, {line.item: line.error or "no score"})
                else:
                    reply.add({line.item: float(line.score)}, {})
                left.discard(line.item)
                self._said[line.item] = line
            elif not self._check_again(line):
                raise RunError(
                    f"the program answered the item {line.item!r}, which was not requested",
                    hint='repeat the "item" of the line that is answered',
                )
            self._has_answered, self._suspects = True, []
        return None

    def _check_again(self, line: ProgramLine) -> bool:
        """Whether an item had this answer before; RunError if it had another one."""
        before = self._said.get(line.item)
        if before is not None and before.score != line.score:
            raise RunError(
                f"the program gave the item {line.item!r} two answers: {before.answer}, then "
                f"{line.answer}",
                hint="print one line per item; to have each item answered several times, pass "
                "--repeats; if the first answer was recorded and is wrong, replace it with "
                "fewbench tell --correct",
            )
        return before is not None


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


def _parsed(text: str) -> ProgramLine:
    try:
        parsed: Any = loads(text)
        return ProgramLine.model_validate(parsed)
    except ValueError as error:
        shown = masked(text.strip())[:80]
        raise RunError(
            f"the program printed {shown!r}, which is not an answer",
            hint='print one line per item on standard output, as {"item": "…", "score": 1}, and '
            "everything else on standard error",
        ) from error


class _Program:
    """A running program, whose lines a thread reads."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            # In a group of its own: Ctrl-C is for fewbench, which then ends the program.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise RunError(
                f"cannot start {command[0]}: {error.strerror}",
                hint="give a program and its arguments after --, as in -- python answer.py",
            ) from error
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._waited: float | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip():
                self._lines.put(line)
        self._lines.put(None)

    def send(self, text: str) -> None:
        """Write to the program's input; that of a dead program goes nowhere."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(text)
            self._process.stdin.flush()

    def read(self, timeout: float | None) -> str | None:
        """Return the next line, or None if the program has ended or hangs."""
        try:
            return self._lines.get(timeout=timeout)
        except queue.Empty:
            self._waited = timeout
            return None

    def unread(self) -> Iterator[str]:
        """Yield the lines that came and were not read yet."""
        with suppress(queue.Empty):
            while (text := self._lines.get_nowait()) is not None:
                yield text

    def problem(self) -> str:
        """Return what happened to the program, in words."""
        if self._waited is not None:
            return f"printed nothing for {self._waited:g} s (--timeout)"
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        code = self._process.returncode
        if code is None:
            return "closed its output"
        return f"ended with exit code {code}" if code >= 0 else f"died by signal {-code}"

    def end(self, patience: float = 0.0) -> None:
        """Close the input, wait, then end the program and what it started."""
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with suppress(OSError):
                    os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience if number is None else 1.0)
                break
        self._reader.join(1.0)
        with suppress(OSError):
            self._process.stdout.close()  # type: ignore[union-attr]
