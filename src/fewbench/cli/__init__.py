"""The command line: parse, call, print."""

import errno
import os
import re
import sys
import warnings
from codecs import lookup
from contextlib import suppress
from io import TextIOWrapper
from typing import NoReturn

from fewbench._text import masked_arguments, masking_records, say
from fewbench.cli.app import COMMANDS, app, load_command
from fewbench.cli.help import USAGE_ERROR
from fewbench.errors import EstimateWarning, FewbenchError, first_line

INTERRUPTED = 130
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
PASSED_ON = re.compile(r"(^|\s)(--|lm-eval run|inspect eval)\s.*")
"""Words after --, or of a harness's own command, which are not options of fewbench."""
# In the reason that Python or pydantic gives if a value is not a number.
PERCENTAGE = re.compile(r"\bfloat\b.*'([\d.]+)%'", re.DOTALL)
FULL = {errno.ENOSPC, errno.EDQUOT}


def main() -> None:
    """Run the command line; user errors are one line and exit code 2, no traceback."""
    try:
        _open_streams()
        with warnings.catch_warnings(), masking_records():
            warnings.simplefilter("ignore", EstimateWarning)  # commands print them
            code = app(prog_name="fewbench", standalone_mode=False)
        sys.stdout.flush()  # while errors can still be reported
    except FewbenchError as error:
        _fail(error.message, error.hint)
    except OSError as error:
        path = error.filename2 or error.filename
        hint = "free some space and run the command again" if error.errno in FULL else None
        _fail(str(error) if path is None else f"{path}: {error.strerror}", hint)
    except MemoryError as error:
        hint = "use a machine with more memory, or fewer models or items"
        _fail(f"not enough memory: {first_line(error)}", hint)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # the help
            sys.exit(2)
        command = error.ctx.command_path if error.ctx else "fewbench"
        hint = f"see {command} --help"
        if share := PERCENTAGE.search(str(error.__cause__ or error.__context__)):
            hint = f"write {share[1]}% as {float(share[1]) / 100:g}; {hint}"
        by_folder = command.split()[-1] in ("gate", "versus")
        if by_folder and getattr(error, "option_name", "") in ("-t", "--target"):
            hint = f"name the target as DIR:TARGET; {hint}"
        _fail(masked_arguments(error.format_message()), hint)
    if code == INTERRUPTED:  # typer turns Ctrl-C into this code
        say("fewbench: stopped; no file is damaged")
    sys.exit(code or 0)


def _open_streams() -> None:
    """Make all text printable in any locale, and keep files from the numbers of closed streams."""
    is_closed = sys.stdout is None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if is_closed:
        _fail("the standard output is closed", "redirect it to a file or to /dev/null")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            is_ascii = lookup(stream.encoding).name == "ascii"  # of LC_ALL=C
            encoding = "utf-8" if is_ascii else stream.encoding
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    paths = sys.argv[1:]
    with suppress(OSError):  # a folder that is gone
        paths = [*paths, os.getcwd()]
    for path in paths:
        if re.search("[\udc80-\udcff]", path):
            _fail(
                f"{path}: not text in this locale ({sys.getfilesystemencoding()})",
                "set LC_ALL=C.UTF-8 (and not PYTHONUTF8=0), or rename the file or folder",
            )


def _options_of(words: list[str]) -> set[str]:
    """Return the options of the command that the words begin with; of a group, of all in it."""
    try:
        command = load_command(words[0]) if words and words[0] in COMMANDS else None
    except FewbenchError:  # what packages add cannot be loaded
        command = None
    if command is None:
        return set()
    below = getattr(command, "commands", {})
    every = [below[words[1]]] if words[1:] and words[1] in below else [command, *below.values()]
    return {
        name
        for command in every
        for it in command.params
        for name in (*it.opts, *it.secondary_opts)
    }


def _fail(message: str, hint: str | None) -> NoReturn:
    if hint is not None and "import" not in hint:
        options = _options_of(sys.argv[1:])
        to_fewbench = PASSED_ON.sub("", hint)
        named = dict.fromkeys(OPTION.findall(to_fewbench)) if options else ()
        lacking = [name for name in named if name not in options]
        if other := [name for name in lacking if name in _options_of(["import"])]:
            are = "is an option" if len(other) == 1 else "are options"
            hint += f"; {', '.join(other)} {are} of fewbench import: import the file first"
    line = message if hint is None else f"{message} (hint: {hint})"
    say(f"fewbench: error: {' '.join(line.split())}")
    sys.exit(2)
