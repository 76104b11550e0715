"""Commands, each in its own process: the account they run under, what they require, what they say of a database."""

import os
import pty
import pwd
import subprocess
import sys
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import NoReturn

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.config import command_line
from pgqueue_admin.management.commands import dead, endpoint
from pgqueue_admin.management.commands.dead import NO_DATABASE
from pgqueue_admin.management.commands.prepare import Command
from tests.waiting import PATIENCE, gathered

# Commands, each in its own process, where nothing is started or a foreign database does not answer.
ROOT = Path(__file__).parent.parent.parent


def run(var: Path, *argv: str, **environment: str) -> tuple[int, str]:
    here = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "QUEUES_URL"}}
    here |= {"PGQUEUE_STATE_DIR": str(var), "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings", **environment}
    command = [sys.executable, "manage.py", *argv]
    ran = subprocess.run(command, cwd=ROOT, env=here, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stderr


def test_former_settings_module_is_refused_with_the_new_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A systemd unit copied before the module was renamed still names the old one."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "pgqueue_admin.config.worker_settings")
    with pytest.raises(SystemExit, match=r"pgqueue_admin\.config\.base_settings"):
        command_line.main()


@pytest.mark.parametrize(
    ("argv", "code"), [(["dead", "list"], NO_DATABASE), (["endpoint", "Sales"], 1), (["engine_schema"], 1)]
)
def test_where_nothing_is_started_they_say_what_starts_it(tmp_path: Path, argv: list[str], code: int) -> None:
    ended, said = run(tmp_path, *argv)
    assert ended == code
    assert "make run" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("argv", "code"), [(["dead", "list"], NO_DATABASE), (["migrate", "--check"], 1)])
def test_hint_of_make_run_is_left_out_for_a_given_database(tmp_path: Path, argv: list[str], code: int) -> None:
    ended, said = run(tmp_path, *argv, DATABASE_URL="postgresql://a@127.0.0.1:1/b", SECRET_KEY="k" * 64)
    assert ended == code
    assert "Connection refused" in said
    assert "make run" not in said


# A command records who ran it, even if the account has no name.
@pytest.mark.usefixtures("console_database")
def test_an_account_without_a_name_is_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a numeric user."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    for command, words in ((endpoint.Command(), ["Sales"]), (dead.Command(), ["retry", "1"])):
        assert command.create_parser("manage.py", "it").parse_args(words).who == f"uid {os.getuid()}"


# The login that `make run` prints before the console starts is not lost if the process is killed there.
class Gone(StringIO):
    """A terminal that was closed."""

    def write(self, text: str, /) -> NoReturn:
        raise BrokenPipeError


def test_a_login_that_could_not_be_told_is_not_kept(console_database: str) -> None:
    with pytest.raises(BrokenPipeError):
        Command(stdout=Gone())._tell_login()
    assert not User.objects.exists()


# `manage.py history` without an act runs until it is stopped, and says so at a terminal.
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


def test_help_of_history_says_that_it_does_not_return() -> None:
    asked = [sys.executable, "manage.py", "history", "--help"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "goes on and does not return" in " ".join(told.split())
