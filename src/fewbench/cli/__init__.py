"""The command line: parse, call, print."""

import sys

from fewbench.cli.app import app
from fewbench.errors import FewbenchError


def main() -> None:
    """Run the command line; what a user can mend is one line and exit code 2, no traceback."""
    try:
        app()
    except FewbenchError as error:
        line = " ".join(error.message.split())
        hint = f" (hint: {' '.join(error.hint.split())})" if error.hint else ""
        print(f"fewbench: error: {line}{hint}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"fewbench: error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("fewbench: stopped; files are whole", file=sys.stderr)
        sys.exit(130)
