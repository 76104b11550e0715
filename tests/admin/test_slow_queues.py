"""With a slow queue database and a fast console database, admin names the slow one and queries it once (C4)."""

import html
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from psycopg import sql

from pgqueue_admin.config import env
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql.connect_options import LOOK_SECONDS
from pgqueue_admin.models import Operation, queue_database
from tests.admin.test_archive import text
from tests.archived_messages import REFUSED, dead
from tests.console.sampled import elsewhere
from tests.explain import executed

SignIn = Callable[..., Client]
LIST, ARCHIVE = "/admin/pgqueue/archivedmessage/", '"messages"."message_archive"'
SAID = "The queue database was too slow: what is asked here is stopped after 5.0 s."
RARE = {"state": "discarded", "kind": "lease", "queue": '"public"."Rare"', "exception_type": "Rare"}
MANY = """
insert into messages.message_archive (message, result, handled_by, kind, queue, message_type, exception_type, died_at,
    created_at)
select '{}', 'success', 'Shop', 'transport', '"public"."Q' || n % 9 || '"', 'Shop.Ship', 'E' || n % 9,
    now() - n * interval '1 s', now() from generate_series(1, 60000) n
"""
ONE = """
insert into messages.message_archive (message, result, handled_by, kind, queue, exception_type, resolution,
    created_at)
values ('{}', 'failed', 'Shop', 'lease', '"public"."Rare"', 'Rare', 'discarded', now())
"""


@pytest.fixture
def slow(archived_console: str, connect: Callable[[str], Connection], monkeypatch: Any) -> Iterator[Connection]:
    """Give both connections to the queues a 0.2 s timeout; yield a session that can lock the archive."""
    monkeypatch.setitem(queue_database._READS, "statement_timeout", 0.2)
    options = {**connections["queues"].settings_dict["OPTIONS"], "options": "-c statement_timeout=200"}
    with elsewhere("queues", OPTIONS=options):
        yield connect(archived_console)


@contextmanager
def locked_at(slow: Connection, about: str) -> Iterator[None]:
    """Lock the archive just before Django's first statement that contains ``about``."""
    with ExitStack() as held:

        def execute(on: Any, asked: str, *rest: Any) -> Any:
            if about in asked and not slow.in_transaction:
                held.enter_context(slow.transaction())
                slow.run("lock table messages.message_archive in access exclusive mode")
            return on(asked, *rest)

        with connections["queues"].execute_wrapper(execute):
            yield
        assert slow.in_transaction


@pytest.mark.parametrize("path", ["", "?queue=x", "?q={}", "{}/change/", "{}/history/"])
def test_a_slow_look_is_no_outage_of_the_console(sign_in: SignIn, slow: Connection, path: str) -> None:
    client, url = sign_in("ana"), LIST + path.format(dead()[0].id)
    with locked_at(slow, ARCHIVE):
        answers = client.get(url), client.get(url)  # the second fails before Django queries
    for each in answers:
        assert (each.status_code, "Refresh" in each.headers) == (200, False)
        assert SAID in text(each)
        assert "statement timeout" in text(each)
    assert SAID not in text(client.get(url))


@pytest.mark.parametrize("more", [{}, {"select_across": "1"}])
def test_an_act_on_a_list_that_was_not_read_was_not_done(sign_in: SignIn, slow: Connection, more: Any) -> None:
    client, ids = sign_in("ana"), [dead(exception=REFUSED)[0].id]
    with locked_at(slow, ARCHIVE):
        said = text(client.post(LIST, {"action": "retry", "_selected_action": ids, **more}))
    assert f"{SAID} canceling statement due to statement timeout Nothing was done." in said
    assert not Operation.objects.exists()


def test_an_act_whose_messages_were_not_read_was_not_done(sign_in: SignIn, slow: Connection) -> None:
    """The list arrives in time; reading the selected messages does not."""
    client, ids = sign_in("ana"), [dead(exception=REFUSED)[0].id]
    with locked_at(slow, '"id" IN'):
        answer = client.post(LIST, {"action": "retry", "_selected_action": ids})
    assert answer["Location"] == LIST
    assert f"Nothing was retried: {SAID}" in text(client.get(LIST))
    assert not Operation.objects.exists()


def test_an_outage_of_the_consoles_own_database_stays_one(sign_in: SignIn, slow: Connection) -> None:
    client, asked = sign_in("ana"), {"action": "retry", "_selected_action": [dead(exception=REFUSED)[0].id]}
    short = env.limited(connections["default"].settings_dict, LOOK_SECONDS)
    with elsewhere("default", OPTIONS=short["OPTIONS"]), slow.transaction():
        slow.run("lock table pgqueue_console.pgqueue_operation in access exclusive mode")
        answer = client.post(LIST, asked)
    assert answer.status_code == 503
    assert "The console's own database does not answer" in html.unescape(text(answer))


def test_no_filter_reads_the_archive_whole(sign_in: SignIn, archived_console: str, connect: Any) -> None:
    """Checked with EXPLAIN (ANALYZE) of the page's queries; nearly all rows have another state, queue and exception."""
    client, connection = sign_in("ana"), connect(archived_console)
    for each in (MANY, ONE, "vacuum analyze messages.message_archive"):
        connection.run(each)
    whole = connection.value("select relpages from pg_class where oid = 'messages.message_archive'::regclass")
    asked = [each.expected_parameters()[0] for each in client.get(LIST).context["cl"].filter_specs]
    assert asked
    for name in asked:
        page = partial(client.get, LIST, {name: RARE[name.partition("__")[0]]})
        assert (page().context["cl"].result_count, most(connection, page) < whole / 2) == (1, True), name
    assert most(connection, partial(client.get, LIST, {"_facets": "True"})) < whole / 2


def most(connection: Connection, page: Callable[[], Any]) -> int:
    """Blocks read by the most expensive of the page's statements on the archive."""
    with CaptureQueriesContext(connections["queues"]) as asked:
        page()
    return max(executed(connection, sql.SQL(each["sql"])).blocks for each in asked if ARCHIVE in each["sql"])
