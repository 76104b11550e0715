"""A message names its retry's target: only input queues are allowed, others if a user names them."""

import io
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import environ
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from pgqueue_admin.archive import ingester, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Endpoint, Operation, Queue
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, queries, runner, selection, single
from pgqueue_admin.services.operations.targets import judge
from pgqueue_admin.transport.wire import headers as h
from tests.console.sampled import elsewhere, sample

TYPE = "Forged.Message"
FIVE = "id uuid primary key, expires timestamp, headers text not null, body bytea, seq serial"
FOUR = FIVE.removesuffix(", seq serial")
MADE_HEADERS = FIVE.replace("headers text not null", "headers text generated always as ('{{}}') stored")
# By name: columns (or a statement), and whether a retry may write there: always, when named, or never.
TABLES = {
    "Input": (FIVE, "yes"),
    "Foreign": (FIVE, "yes"),
    "error": ("", "named"),
    "audit": ("", "named"),
    "Some.Errors": (FIVE, "named"),
    "failures": (FIVE, "named"),  # an endpoint's error queue, empty
    "Without.Seq": (FOUR, "no"),
    "Of.Texts": ("id text primary key, expires text, headers text, body text, seq serial", "no"),
    "Wants.More": (f"{FIVE}, tenant int not null", "no"),
    "Makes.Headers": (MADE_HEADERS, "no"),
    "Not.Ours": (FIVE, "no"),
    "No.Numbers": (FIVE, "no"),
    "Closed": (FIVE, "no"),
    "Sales.Delayed": ("", "no"),
    "SubscriptionRouting": ("", "no"),
    "Gone": ("", "no"),
}
MORE = """
    alter table public."Foreign" owner to neighbour;
    alter table public."Closed" enable row level security;
    create view public."Seen" as select * from public."Input";
    grant insert on public."No.Numbers" to retrier
"""
GRANTED = ("Input", "Foreign", "error", "audit", "Some.Errors", "failures", "Wants.More", "Makes.Headers", "Closed")
ELSEWHERE = ('"public"."Seen"', '"messages"."message_archive"', '"pg_catalog"."pg_class"', '"secret"."Input"')


def canonical(name: str) -> str:
    return f'"public"."{name}"'


@pytest.fixture
def owner(archived_console: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(archived_console)


@pytest.fixture
def tried(owner: Connection, archived_console: str) -> Iterator[Connection]:
    """One forged failure per table, and a console whose role owns none of them."""
    owner.run("""do $$ begin
        create role neighbour; exception when duplicate_object then null; end $$;
        do $$ begin create role retrier login; exception when duplicate_object then null; end $$;
        alter role retrier password 'retrier';
        create schema secret""")
    owner.run(f'create table secret."Input" ({FIVE})')
    for name, (columns, _) in TABLES.items():
        if columns:
            owner.run(f'create table public."{name}" ({columns})')
    owner.run(MORE)
    Endpoint.objects.create(name="Ours", ours=True, schema="public", table="Ours", error_queue="failures")
    forge(owner, *map(canonical, TABLES), *ELSEWHERE)
    with as_retrier(owner, archived_console):
        yield owner


@contextmanager
def as_retrier(owner: Connection, dsn: str) -> Iterator[None]:
    owner.run("""grant usage on schema messages, public to retrier;
        grant all on all tables in schema messages to retrier;
        grant usage on all sequences in schema messages to retrier;
        grant select on all tables in schema public to retrier""")
    for name in GRANTED:
        sequence = owner.value(f"select pg_get_serial_sequence('public.\"{name}\"', 'seq')")
        owner.run(f'grant insert on public."{name}" to retrier; grant usage on sequence {sequence} to retrier')
    with elsewhere("queues", **{**environ.Env.db_url_config(dsn), "USER": "retrier", "PASSWORD": "retrier"}):
        yield


def forge(owner: Connection, *failed: str) -> None:
    errors = Address("public", "error")
    for each in failed:
        text = json.dumps({h.FAILED_Q: each, h.MESSAGE_ID: each, h.ENCLOSED_MESSAGE_TYPES: TYPE})
        values = {"id": uuid.uuid4(), "ttbr_ms": None, "headers": text, "body": b"{}"}
        owner.run(postgresql().queue.send(table=errors), values)
    while ingester.ingest(owner, errors).full:
        pass


def forged() -> dict[str, int]:
    """Archive ids of the forged failures by message id."""
    with queue_database().read_session() as connection:
        rows = store.page(connection, ArchiveFilter(type_is=TYPE, state=""), limit=100).messages
    return {row.message_id: row.id for row in rows}


def counts(owner: Connection) -> dict[str, int]:
    there = [name for name in TABLES if name != "Gone"]
    return {name: owner.value(f'select count(*) from public."{name}"') for name in there}


@pytest.mark.parametrize("sampled", [False, True])
def test_the_preview_names_what_fails(tried: Connection, ana: User, sampled: bool) -> None:
    if sampled:
        sample()
    before = counts(tried)
    operation = selection.freeze("retry", ArchiveFilter(type_is=TYPE), ana, "console")
    with queue_database().read_session() as connection:
        told = queries.retry_targets(connection, operation)
    will_fail = {each.target.address for each in told.all if each.target.refusal()}
    lifecycle.start(operation.pk, ana)
    runner.run(operation.pk)
    with queue_database().read_session() as connection:
        items = queries.items(connection, operation.pk, limit=100)
        found = {item.archive_id: store.get(connection, item.archive_id) for item in items}
    addresses = {archive_id: message.target for archive_id, message in found.items() if message and message.target}
    failed = {addresses[item.archive_id] for item in items if item.outcome == "failed"}
    assert failed == will_fail
    done = sorted(addresses[item.archive_id].table for item in items if item.outcome == "done")
    assert done == sorted(name for name, (_, may) in TABLES.items() if may == "yes")
    after = counts(tried)
    assert {name for name in before if before[name] != after[name]} == set(done)
    whys = {item.why for item in items if item.outcome == "failed"}
    assert not [why for why in whys if "did not take it" in why], "the judge knew each"
    named = {canonical(name) for name, (_, may) in TABLES.items() if may == "named"}
    assert {each.target.name for each in told.to_choose} == named


def test_single_retry_judges_targets_like_an_operation(tried: Connection, ana: User) -> None:
    for name, archive_id in forged().items():
        address = postgresql().parse_address(name)
        expected = TABLES[address.table][1] if name not in ELSEWHERE else "no"
        outcome = single.act("retry", archive_id, ana, "console")
        assert (outcome.result == "done") == (expected == "yes"), (name, outcome.why)
        named = single.act("retry", archive_id, ana, "console", targets=[name]) if expected != "yes" else None
        assert named is None or (named.result == "done") == (expected == "named"), (name, named.why)
    entries = AuditEntry.objects.filter(verb="retry").exclude(after=None)
    assert sorted((each.after or {})["targets"] for each in entries) == sorted(
        [f'"public"."{name}"'] for name, (_, may) in TABLES.items() if may == "named"
    )


def test_target_is_named_on_the_page_in_admin_and_at_the_prompt(tried: Connection) -> None:
    root = Client()
    root.force_login(User.objects.create_superuser("root"))
    ids, before = forged(), counts(tried)
    error, audit, other = (ids[f'"public"."{name}"'] for name in ("error", "audit", "Some.Errors"))
    page = root.get(f"/archive/{error}/").content.decode()
    assert "Its target is an error queue, not an input queue." in page
    answer = root.post("/operations/", {"act": "retry", "id": error}, follow=True)
    (place, _) = answer.redirect_chain[-1]
    box = '<input type="checkbox" name="target" value="&quot;public&quot;.&quot;error&quot;">'
    assert box in answer.content.decode()
    root.post(f"{place}start/", {"target": '"public"."error"'})
    runner.run(Operation.objects.latest("pk").pk)
    assert counts(tried)["error"] == before["error"] + 1

    frozen = selection.freeze("retry", [audit], "root", "admin")
    confirm = f"/admin/pgqueue/operation/{frozen.pk}/confirm/"
    assert "an audit queue" in root.get(confirm).content.decode()
    root.post(confirm, {"go": "Retry 1", "target": '"public"."audit"'})
    runner.run(frozen.pk)
    assert counts(tried)["audit"] == before["audit"] + 1

    said = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("dead", "retry", str(other), "--yes", stdout=said)
    assert "goes there only when you choose it by name" in said.getvalue()
    call_command("dead", "retry", str(other), "--yes", "--into", "public.Some.Errors", stdout=io.StringIO())
    assert counts(tried)["Some.Errors"] == before["Some.Errors"] + 1


def test_an_address_named_at_the_prompt(tried: Connection) -> None:
    other = forged()['"public"."Some.Errors"']
    asked = io.StringIO()
    with pytest.raises(CommandError):
        call_command("dead", "retry", str(other), stdout=io.StringIO(), stderr=asked)
    assert 'With --into \'"public"."Some.Errors"\' it does.' in asked.getvalue()
    call_command("dead", "retry", str(other), "--yes", "--into", '"public"."Some.Errors"', stdout=io.StringIO())
    assert Operation.objects.latest("pk").targets == ['"public"."Some.Errors"']
    assert tried.value('select count(*) from public."Some.Errors"') == 1


def test_code_of_others_is_named_before_it_runs(tried: Connection, ana: User) -> None:
    tried.run("""
        create function public.spy() returns trigger language plpgsql as $$ begin return new; end $$;
        alter function public.spy() owner to neighbour;
        create function public.looks(text) returns boolean language sql immutable as $$ select true $$;
        alter function public.looks(text) owner to neighbour;
        create trigger spies before insert on public."Input" for each row execute function public.spy();
        alter table public."Input" add constraint checked check (public.looks(headers));
        create function public.safe() returns trigger language plpgsql security definer as $$ begin return new; end $$;
        alter function public.safe() owner to neighbour;
        create trigger its_own before insert on public."Foreign" for each row execute function public.safe();
    """)
    address = Address("public", "Input")
    with queue_database().read_session() as connection:
        judged = judge(connection, [address, Address("public", "Foreign")])
    assert judged[address].runs == ("check checked of role neighbour", "trigger spies of role neighbour")
    assert judged[Address("public", "Foreign")].runs == (), "it runs with its owner's rights, not with ours"
    operation = selection.freeze("retry", [forged()['"public"."Input"']], ana, "console")
    root = Client()
    root.force_login(User.objects.create_superuser("root"))
    for place in (f"/operations/{operation.pk}/", f"/admin/pgqueue/operation/{operation.pk}/confirm/"):
        assert "trigger spies of role neighbour" in root.get(place).content.decode(), place
    message = root.get(f"/archive/{forged()[canonical('Input')]}/").content.decode()
    assert "trigger spies of role neighbour" in message


def test_target_sampled_as_an_error_queue_by_its_messages_is_refused(owner: Connection, ana: User) -> None:
    """Its name does not show it, but its messages do."""
    owner.run(f'create table public."Trouble" ({FIVE})')
    forge(owner, '"public"."Trouble"')
    failed = json.dumps({h.FAILED_Q: "x"})
    sent = "insert into public.\"Trouble\" (id, headers, body) values (gen_random_uuid(), %(headers)s, '')"
    owner.run(sent, {"headers": failed})
    sample()
    assert Queue.objects.get(table="Trouble").kind == "error"
    outcome = single.act("retry", forged()['"public"."Trouble"'], ana, "console")
    assert (outcome.result, "is an error queue" in str(outcome.why)) == ("failed", True)
