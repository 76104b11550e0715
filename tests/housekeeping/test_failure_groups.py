"""Other programs' archived messages get fingerprints, wrong counts are corrected, and missing tables are no error."""

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


def test_task_fingerprints_rows_archived_by_other_programs(database: Connection) -> None:
    database.run(FOREIGN)
    assert tasks.tell_failures() == 1
    assert tasks.tell_failures() == 0
    assert len(database.value("select fingerprint from messages.message_archive")) == 16


def test_counts_are_added_up_and_those_that_are_wrong_put_right(
    database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    database.run(FOREIGN)
    tasks.tell_failures()
    assert tasks.add_up_failures() == 1
    assert tasks.add_up_failures() == tasks.recount_failures() == 0
    assert database.one("select state, number from messages.failure_tally") == ("dead", 1)
    database.run("alter table messages.message_archive disable trigger user")
    database.run("delete from messages.message_archive")
    assert tasks.recount_failures() == 1
    assert "Counts of failures were wrong and are right again, 1 of them" in caplog.text
    assert tasks.add_up_failures() == 1
    assert database.value("select count(*) from messages.failure_tally") == 0


def test_without_the_tables_nothing_is_told(database: Connection) -> None:
    database.run("drop schema messages cascade")
    assert tasks.tell_failures() == tasks.add_up_failures() == tasks.recount_failures() == 0
