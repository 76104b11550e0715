"""A command says whose name is kept, also where the account has none."""

import os
import pwd

import pytest

from pgqueue_admin.management.commands import dead, endpoint


@pytest.mark.usefixtures("console_database")
def test_an_account_without_a_name_is_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number of its own."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    for command, words in ((endpoint.Command(), ["Sales"]), (dead.Command(), ["retry", "1"])):
        assert command.create_parser("manage.py", "it").parse_args(words).who == f"uid {os.getuid()}"
