"""manage.py history without an act does not return, and says so to whoever started it by hand."""

import os
import pty
import subprocess
import sys
from contextlib import suppress

from tests.management.test_database_errors import ROOT
from tests.waiting import PATIENCE, gathered

SAID = "This is the driver, as the supervisor keeps one: it goes on until Ctrl-C."


def test_at_a_terminal_the_driver_says_what_it_is(console_database: str, tmp_path: object) -> None:
    hand, terminal = pty.openpty()
    about = {"DATABASE_URL": console_database, "PGQUEUE_STATE_DIR": str(tmp_path), "SECRET_KEY": "k" * 64}
    environment = {**os.environ, **about, "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings"}
    command = [sys.executable, "manage.py", "history"]
    driver = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=terminal, stderr=subprocess.DEVNULL)
    try:
        assert gathered(lambda: [os.read(hand, 1)], lambda read: SAID.encode() in b"".join(read))
        assert driver.poll() is None
    finally:
        driver.terminate()
        driver.wait(PATIENCE)
        for each in (hand, terminal):
            with suppress(OSError):
                os.close(each)


def test_its_help_says_it() -> None:
    asked = [sys.executable, "manage.py", "history", "--help"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "goes on and does not return" in " ".join(told.split())
