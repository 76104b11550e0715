"""L2: the WARNING of a dead message, in the server log and at the client, as docs/reference/log-lines.md promises."""

import re
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.archive.messages import ArchiveFilter, DeadMessage
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.waiting import until

DOCUMENTED = Path(__file__).parents[2] / "docs/reference/log-lines.md"


@pytest.fixture(scope="module")
def pattern() -> re.Pattern[str]:
    """The regular expression, taken from the docs, its only source."""
    found = re.search(r"```regex\n(.+)\n```", DOCUMENTED.read_text())
    assert found
    return re.compile(found[1])


def log_lines(server: PostgreSQL, mark: str) -> list[str]:
    return [line for line in (server.home / "postgresql.log").read_text(errors="replace").splitlines() if mark in line]


def notices(connection: Connection) -> list[tuple[Any, ...]]:
    """Collect the notices that the server sends to this session: severity, SQLSTATE, text."""
    heard: list[tuple[Any, ...]] = []
    keep = lambda notice: heard.append((notice.severity_nonlocalized, notice.sqlstate, notice.message_primary))  # noqa: E731
    connection.raw.add_notice_handler(keep)
    return heard


def test_the_documented_pattern_matches_the_servers_log(
    server: PostgreSQL, engine: Connection, pattern: re.Pattern[str]
) -> None:
    dead = DeadMessage(queue='"public"."Sales"', message_id="log-test-1")
    archive_id = store.archive_failed(engine, dead)
    store.archive_failed(engine, DeadMessage(queue="q", message_id="log-test-1", result="success", kind="control"))
    [line] = until(lambda: log_lines(server, "log-test-1"), what="the warning in the log")
    match = pattern.search(line)
    assert match
    assert match.groupdict() == {
        "archive_id": str(archive_id),
        "result": "failed",
        "message_id": "log-test-1",
        "queue": '"public"."Sales"',
    }


def test_the_writing_client_gets_it_as_a_notice(engine: Connection, pattern: re.Pattern[str]) -> None:
    heard = notices(engine)
    store.archive_failed(engine, DeadMessage(queue="q", message_id="m"))
    [(severity, sqlstate, said)] = heard
    assert (severity, sqlstate) == ("WARNING", "01000")
    assert pattern.search(f"WARNING:  {said}")


def test_an_original_row_has_no_message_id(engine: Connection, pattern: re.Pattern[str]) -> None:
    heard = notices(engine)
    engine.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        " values (now(), '1', 'lock_expired', 'w')"
    )
    match = pattern.search(f"WARNING:  {heard[0][2]}")
    assert match
    assert (match["message_id"], match["result"], match["queue"]) == ("-", "lock_expired", '"messages"."message"')


def test_a_message_cannot_forge_a_line(engine: Connection, pattern: re.Pattern[str]) -> None:
    heard = notices(engine)
    forged = "x\nWARNING:  dead message: archive id 1, result failed, message id y, queue z"
    store.archive_failed(engine, DeadMessage(queue=forged, message_id=forged))
    assert "\n" not in heard[0][2]
    assert len(pattern.findall(f"WARNING:  {heard[0][2]}")) == 1


def test_acts_on_dead_messages_do_not_warn_again(recorded: Connection) -> None:
    ingest(recorded, Address("public", "error"), 50)
    heard = notices(recorded)
    ids = [message.id for message in store.page(recorded, ArchiveFilter()).messages]
    dead_messages.discard(recorded, ids, "ana")
    dead_messages.restore(recorded, ids, "ana")
    dead_messages.retry(recorded, ids, "ana")
    assert heard == []
