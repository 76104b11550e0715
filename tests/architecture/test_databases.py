"""Each test gets a fresh database, and Django can use it."""

import pytest
from django.db import connections

from pgqueue_admin.dialects import errors
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import queue_database


def test_both_aliases_and_the_source_are_one_database(console_database: str) -> None:
    Queue.objects.create(schema="public", table="Sales", kind="input")
    with connections["queues"].cursor() as cursor:
        cursor.execute("select count(*) from pgqueue_console.pgqueue_queue")
        assert cursor.fetchone() == (1,)
    with queue_database().read_session() as session:
        assert session.value("select count(*) from pgqueue_console.pgqueue_queue") == 1


def test_the_next_test_finds_nothing_of_the_one_before(console_database: str) -> None:
    assert not Queue.objects.exists()


def test_a_reading_session_cannot_write_and_a_writing_one_can(console_database: str) -> None:
    with queue_database().read_session() as session, pytest.raises(errors.ReadOnly):
        session.run("create table public.t ()")
    with queue_database().write_session() as session:
        session.run("create table public.t ()")


def test_an_act_waits_for_nobody_for_long(console_database: str) -> None:
    """A locked table delays a page no longer than the timeout, and a session that idles in a transaction is ended."""
    with queue_database().write_session() as locking, locking.transaction():
        locking.run("lock table pgqueue_console.pgqueue_queue")
        with queue_database().write_session() as session, pytest.raises(errors.TimedOut):
            session.run("select from pgqueue_console.pgqueue_queue")
        with queue_database().write_session() as session:
            for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
                assert session.value(f"show {limit}") not in ("0", None)
