"""What other programs archived is told from time to time, and what may not be written is no error."""

from collections.abc import Callable

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.housekeeping import tasks

FOREIGN = """
insert into messages.message_archive (created_at, message, result, handled_by, details)
values (now(), '["x"]', 'failed', 'worker', 'no order 7')
"""


@pytest.fixture
def database(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(console_database)


def test_it_tells_the_failures_of_what_others_archived(database: Connection) -> None:
    database.run(FOREIGN)
    assert tasks.tell_failures() == 1
    assert tasks.tell_failures() == 0
    assert len(database.value("select fingerprint from messages.message_archive")) == 16


def test_without_the_tables_nothing_is_told(database: Connection) -> None:
    database.run("drop schema messages cascade")
    assert tasks.tell_failures() == 0
