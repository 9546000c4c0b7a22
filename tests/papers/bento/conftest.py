from ...show.conftest import balanced, body, look  # noqa: F401
