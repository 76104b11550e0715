"""Times that no calendar holds, in every column of every table that others may write to."""

import io
import itertools
import json
import re
from pathlib import Path

import pytest
from django.core.management import call_command

from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.archive import retention, store
from pgqueue_admin.archive.messages import ArchiveFilter, ArchiveKey
from pgqueue_admin.console import pagination
from pgqueue_admin.dialects.out_of_range_times import Beyond
from pgqueue_admin.dialects.postgresql import addressing
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.history.storage import event_files
from pgqueue_admin.models import Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, runner, selection, single
from tests.console.sampled import sample
from tests.hostile import crawl
from tests.hostile.hostile_site import World
from tests.hostile.test_read_only_role import _expected

IMPOSSIBLE = (
    "infinity", "-infinity", "0044-03-15 12:00:00 BC", "4713-01-02 00:00:00 BC", "294276-12-31 23:59:59",
    "10000-01-01 00:00:00", "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00",
)  # fmt: skip
COLUMNS = """
    select n.nspname as schema, c.relname as name, a.attname as column, a.attnum as nth,
        format_type(a.atttypid, null) as type
    from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
    where a.atttypid in ('timestamp'::regtype, 'timestamptz'::regtype) and a.attnum > 0 and c.relkind = 'r'
        and n.nspname not in ('pg_catalog', 'information_schema') and not a.attisdropped
        and c.relname !~ '^(pgqueue|django|auth|celery)_'
"""
DEEP = "[" * 5000 + "]" * 5000  # neither Python's recursion nor its numbers hold these
LONG = '{"n": 1e5000}'


@pytest.fixture(scope="module")
def spoilt(world: World) -> World:
    """Each column gets each of them, in rows beside each other; and a document that cannot be read."""
    queues = world.queues
    for archive_id in world.dead[:8]:
        single.act("discard", archive_id, "ana", "console")
    with queues.transaction():
        queues.run("set local session_replication_role = replica")  # the archive's events are append-only
        runs = "messages.schedule_run"  # a time is part of their key: each row gets another
        queues.run(
            f"delete from {runs} where ctid not in (select ctid from {runs} limit %(most)s)", {"most": len(IMPOSSIBLE)}
        )
        for column in queues.all(COLUMNS):
            table = f"{addressing.quote(column.schema)}.{addressing.quote(column.name)}".replace("%", "%%")
            texts = list(IMPOSSIBLE)
            queues.run(
                f"with shifted as (select ctid, row_number() over (order by ctid) + %(nth)s as shift from {table}) "
                f"update {table} set {addressing.quote(column.column)} = "
                f"(%(texts)s::text[])[1 + shift %% cardinality(%(texts)s::text[])]::{column.type} "
                f"from shifted where shifted.ctid = {table}.ctid",
                {"nth": column.nth, "texts": texts},
            )
        documents = "update messages.message_archive set message = %(text)s::jsonb where id %% 2 = %(half)s"
        for half, text in enumerate((DEEP, LONG)):
            queues.run(documents, {"text": text, "half": half})
    return world


def test_every_address_answers(spoilt: World) -> None:
    client = spoilt.client("root", raise_request_exception=False)
    paths = crawl.few(crawl.paths(spoilt), len(IMPOSSIBLE))  # as many rows as there are such times have each of them
    answers = [(path, name, answer.status_code) for name, path, answer in crawl.get(client, paths)]
    assert [(path, status) for path, name, status in answers if not _expected(name, status)] == []


def test_pages_say_so_and_lack_no_row(spoilt: World) -> None:
    client = spoilt.client("root")
    listed, path = list[str](), "/archive/?q="
    while path:
        page = client.get(path).content.decode()
        assert "The queue database" not in page
        found = list(dict.fromkeys(re.findall(r'<tr role="row" id="m(\d+)">', page)))
        assert found
        assert not set(found) & set(listed)
        listed += found
        older = re.search(r'href="(\?[^"]*after=[^"]*)"', page)
        path = f"/archive/{older[1].replace('&amp;', '&')}" if older else ""
    every = spoilt.queues.all("select id from messages.message_archive order by died_at desc, seq desc")
    assert listed == [str(row.id) for row in every]
    first = client.get("/archive/?q=").content.decode()
    assert first.count('title="impossible time (infinity)"') > 5

    for archive_id in spoilt.dead:
        shown = client.get(f"/archive/{archive_id}/")
        assert "impossible time" in shown.content.decode(), archive_id
    assert "impossible time" in client.get("/admin/pgqueue/archivedmessage/").content.decode()
    assert "impossible time" in client.get(f"/admin/pgqueue/archivedmessage/{spoilt.dead[0]}/change/").content.decode()


def test_back_through_the_pages_as_forward(spoilt: World) -> None:
    with queue_database().read_session() as connection:
        pages, key = [], None
        while True:
            pages.append(store.page(connection, ArchiveFilter(state=""), key, 7))
            if not (key := pages[-1].after):
                break
        assert any(isinstance(each.after.died_at, Beyond) for each in pages[:-1] if each.after)
        for before, page in itertools.pairwise(pages):
            back = store.page(connection, ArchiveFilter(state=""), before=page.before, limit=7)
            assert [each.id for each in back.messages] == [each.id for each in before.messages]


def test_a_key_made_up_by_somebody_is_no_error(spoilt: World) -> None:
    client = spoilt.client("viewer")
    for text in ("infinity", "infinityx", "999999-99-99 00:00:00 BC", "0000-00-00 00:00:00", "-infinity BC", ""):
        assert client.get("/archive/", {"q": "", "after": pagination.pack(text, 1)}).status_code == 200, text
    assert ArchiveKey(Beyond.of("infinity"), 1) > ArchiveKey(Beyond.of("-infinity"), 1)


@pytest.mark.parametrize("state", ["all", "dead", "discarded"])
def test_the_command_line_lists_them(spoilt: World, state: str) -> None:
    plain, document = io.StringIO(), io.StringIO()
    call_command("dead", "list", "--state", state, "--limit", "9999", stdout=plain)
    call_command("dead", "list", "--state", state, "--limit", "9999", "--json", stdout=document)
    told = json.loads(document.getvalue())["messages"]
    assert "impossible time (infinity)" in plain.getvalue() or state == "discarded"
    assert len(told) == len(re.findall(r"^ *\d+  [a-z_]+  ", plain.getvalue(), re.MULTILINE))
    assert {"infinity", "-infinity"} <= {each["died_at"] for each in told} or state == "discarded"


def test_acts_and_previews_know_them(spoilt: World) -> None:
    client = spoilt.client("root")
    operation = selection.freeze("discard", ArchiveFilter(), "ana", "console")
    assert "impossible time" in client.get(f"/operations/{operation.pk}/").content.decode()
    lifecycle.cancel(operation.pk, "ana")
    (discarded,) = (each for each in spoilt.dead[:1])
    outcome = single.act("discard", discarded, "ana", "console")
    assert (outcome.result, "impossible time" in (outcome.why or "")) == ("skipped", True) or outcome.previous_at
    again = selection.freeze("discard", spoilt.dead[:3], "ana", "console")
    lifecycle.start(again.pk, "ana")
    runner.run(again.pk)
    assert Operation.objects.get(pk=again.pk).state == "done"
    assert client.get(f"/operations/{again.pk}/").status_code == 200


def test_who_looks_by_himself_goes_on(spoilt: World, tmp_path: Path) -> None:
    sample(2)
    assert Alerter().look_round()
    with queue_database().write_session() as connection:
        sources(connection)
        days = [event_files.keep(connection, tmp_path) for _ in range(10)]
        assert days[0] > 0 == days[-1]
        assert retention.silent(connection) == []
