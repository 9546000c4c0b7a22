"""The command line in process, as the core's tests have it."""

from ....cli.conftest import _inside_tmp_path, answers, cli, ok, scores  # noqa: F401
