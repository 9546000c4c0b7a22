"""Runs in processes of their own, which tests kill."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def fork():
    """Start work in a child, which ends by itself after ten minutes; return its process id.

    Children share tqdm's lock with this process and each other: one that is killed as it draws a
    bar would keep it for ever, and whoever draws the next bar would wait. So each has its own.
    """
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    from tqdm import tqdm

    def start(work):
        tqdm.set_lock(threading.RLock())
        if child := os.fork():
            return child
        tqdm.set_lock(threading.RLock())
        signal.alarm(600)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)

    return start
