"""A server whose clock is another one, or slow to tell: only our statements see it so."""

from dataclasses import replace

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql


def tells(monkeypatch: pytest.MonkeyPatch, instead: str) -> None:
    """Whatever looks at queues, or asks what time it is, has this SQL in the place of the server's clock."""
    monitor = postgresql().monitor
    asked = {each.name: replace(each, text=each.text.replace("clock_timestamp()", instead)) for each in monitor}
    monkeypatch.setattr(monitor, "_by_name", asked)


def only_in(connection: Connection, there: str, elsewhere: str) -> str:
    """``there`` in the database of this session, ``elsewhere`` in all others: SQL."""
    name = connection.value("select current_database()")
    return f"case current_database() when '{name}' then {there} else {elsewhere} end"
