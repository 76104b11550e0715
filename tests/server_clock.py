"""A server whose clock is wrong or slow, for the monitor's statements only."""

from dataclasses import replace

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql


def tells(monkeypatch: pytest.MonkeyPatch, instead: str) -> None:
    """Replace the server's clock by this SQL in all of the monitor's statements."""
    monitor = postgresql().monitor
    asked = {each.name: replace(each, text=each.text.replace("clock_timestamp()", instead)) for each in monitor}
    monkeypatch.setattr(monitor, "_by_name", asked)


def only_in(connection: Connection, there: str, elsewhere: str) -> str:
    """SQL that is ``there`` in the database of this session and ``elsewhere`` in all others."""
    name = connection.value("select current_database()")
    return f"case current_database() when '{name}' then {there} else {elsewhere} end"
