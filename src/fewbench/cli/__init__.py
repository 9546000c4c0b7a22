"""The command line: parse, call, print."""

import errno
import sys
from typing import Any, NoReturn

import typer

from fewbench.cli.app import app
from fewbench.errors import FewbenchError, first_line

INTERRUPTED = 130
FULL = {errno.ENOSPC, errno.EDQUOT}
# The base of usage errors: typer's class, or click's in older releases.
_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]


def main() -> None:
    """Run the command line; user errors are one line and exit code 2, no traceback."""
    try:
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
    except _USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # the help
            sys.exit(2)
        command = error.ctx.command_path if error.ctx else "fewbench"
        _fail(error.format_message(), f"see {command} --help")
    if code == INTERRUPTED:  # typer turns Ctrl-C into this code
        print("fewbench: stopped; no file is damaged", file=sys.stderr)
    sys.exit(code or 0)


def _fail(message: str, hint: str | None) -> NoReturn:
    line = message if hint is None else f"{message} (hint: {hint})"
    print(f"fewbench: error: {' '.join(line.split())}", file=sys.stderr)
    sys.exit(2)
