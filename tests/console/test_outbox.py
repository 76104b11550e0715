"""Outboxes: what waits between commit and dispatch, whose it is, and how it is sent (O9)."""

import base64
import html
import json
import re
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pgqueue_admin.console.outbox import rows
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.two_phase import Branch
from pgqueue_admin.models import AuditEntry, Endpoint, ForeignOutbox, MaskingRule, Queue
from pgqueue_admin.monitor import in_doubt
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.services import content_access
from pgqueue_admin.transport import Endpoint as Engine
from pgqueue_admin.workers.reporting.in_flight_file import InFlightFile
from pgqueue_admin.workers.reporting.metrics import Counters
from pgqueue_admin.workers.reporting.reporter import Reporter
from tests.console.pages import Connect, shown
from tests.console.test_responses import answer, press
from tests.waiting import held_up, until

NOW = datetime.now(UTC)
OURS = Address("public", "Billing_OutboxData")
PENDING = """insert into {} ("MessageId", "Operations") select 'pending ' || i,
    jsonb_build_array(jsonb_build_object('MessageId', 'sent ' || i, 'Headers',
        jsonb_build_object('NServiceBus.EnclosedMessageTypes', 'Shop.<b>Charged</b>'),
        'Body', encode(i::text::bytea, 'base64'), 'Options', jsonb_build_object('Destination', 'Sales')))
    from generate_series(1, %s) i"""


@pytest.fixture
def look(console_database: str, connect: Connect) -> Connection:
    connection = connect(console_database)
    shop = Engine("Sales", console_database)
    shop.create_queues()
    shop.stop()
    return connection


@pytest.fixture
def billing(look: Connection) -> Endpoint:
    postgresql().outbox_store(OURS).create(look)
    return Endpoint.objects.create(
        name="Billing", table="Billing", outbox="optimistic", transaction_mode="receive_only"
    )


def text(client: Client, address: str = "/outbox/") -> str:
    return " ".join(html.unescape(shown(client, address)).replace("\u00a0", " ").split())


def test_without_one_the_page_says_who_needs_none(as_viewer: Client, look: Connection) -> None:
    assert "No outbox table found" in text(as_viewer)


def test_undispatched_records_are_counted_and_named(as_viewer: Client, billing: Endpoint, look: Connection) -> None:
    look.run(PENDING.format('"Billing_OutboxData"'), [3])
    look.run('update "Billing_OutboxData" set "CreatedAt" = now() - interval \'20 minutes\'')
    page = text(as_viewer)
    assert "3 records of Billing are committed and not sent" in page
    assert "20 min" in page
    one = text(as_viewer, "/outbox/public/Billing_OutboxData/")
    assert "pending 2" in one
    assert "Nothing is sent from here: needs the right" in one


SENT = """insert into "Billing_OutboxData" ("MessageId", "Dispatched", "DispatchedAt", "Operations")
    values ('old', true, now() at time zone 'utc' - %s * interval '1 hour', '[]')"""


@pytest.mark.parametrize(("hours", "said"), [(7 * 24 + 3, "behind by 3 h"), (7 * 24, ""), (24, "")])
def test_a_clean_up_that_is_behind_is_said(
    as_viewer: Client, billing: Endpoint, look: Connection, hours: int, said: str
) -> None:
    """A record is three hours overdue; the retention is a week, and clean-up runs each minute."""
    look.run(SENT, [hours])
    for page in (text(as_viewer), text(as_viewer, "/outbox/public/Billing_OutboxData/")):
        assert ("behind by" in page) is bool(said)
        assert said in page
    assert ("Clean-up of Billing is behind" in text(as_viewer)) is bool(said)


@pytest.mark.parametrize(
    ("dispatched", "analyzed", "said"), [(3, False, "3"), (1_001, False, "1,000+"), (1_500, True, "≈ 1,500")]
)
def test_how_many_dispatched_are_kept_is_said_with_how_it_is_known(
    as_viewer: Client, billing: Endpoint, look: Connection, dispatched: int, analyzed: bool, said: str
) -> None:
    look.run(
        """insert into "Billing_OutboxData" ("MessageId", "Dispatched", "DispatchedAt", "Operations")
        select i::text, true, now() at time zone 'utc', '[]' from generate_series(1, %s) i""",
        [dispatched],
    )
    if analyzed:
        look.run('analyze "Billing_OutboxData"')
    for address in ("/outbox/", "/outbox/public/Billing_OutboxData/"):
        assert re.search(rf"(Dispatched\">|<dd>)(<[^>]*>)?{re.escape(said)}<?", text(as_viewer, address)), address


def test_without_its_index_clean_up_is_unknown_and_not_done(
    as_viewer: Client, billing: Endpoint, look: Connection
) -> None:
    look.run(SENT, [24])
    look.run('drop index "Billing_OutboxData_DispatchedAt"')
    for page in (text(as_viewer), text(as_viewer, "/outbox/public/Billing_OutboxData/")):
        assert "unknown<span" in page
        assert "nothing kept" not in page
        assert "nothing dispatched is kept" not in page


def test_the_lag_of_others_is_said_as_far_as_it_is_known(as_viewer: Client, look: Connection) -> None:
    """Compared with the original's default, which may not be theirs; with our clean-up switched on, as ours."""
    table = Address("public", "Partner_OutboxData")
    postgresql().outbox_store(table).create(look)
    look.run(SENT.replace("Billing", "Partner"), [9 * 24])
    assert "how long it keeps is unknown, over 7 d by 2 d" in text(as_viewer)
    assert "is behind" not in text(as_viewer)
    ForeignOutbox.objects.create(schema="public", table=table.table, keep_seconds=8 * 86_400)
    assert "behind by 24 h" in text(as_viewer) or "behind by 1 d" in text(as_viewer)
    assert "Clean-up of Partner is behind" in text(as_viewer)


def test_where_the_database_cleans_up_itself_nobody_is_behind(
    as_viewer: Client, billing: Endpoint, look: Connection
) -> None:
    Endpoint.objects.update(outbox_clean_seconds=None)
    look.run(SENT, [30 * 24])
    assert "behind" not in text(as_viewer)


def test_recent_records_are_not_stuck(as_viewer: Client, billing: Endpoint, look: Connection) -> None:
    look.run(PENDING.format('"Billing_OutboxData"'), [3])
    assert "Nothing is stuck between commit and send" in text(as_viewer)


def test_a_record_shows_what_it_sends_and_runs_none_of_it(
    as_viewer: Client, billing: Endpoint, look: Connection
) -> None:
    look.run(PENDING.format('"Billing_OutboxData"'), [1])
    page = shown(as_viewer, "/outbox/public/Billing_OutboxData/records/pending%201/")
    assert "<b>Charged" not in page
    assert "Charged" in page
    assert "sent 1" in page
    assert as_viewer.get("/outbox/public/Billing_OutboxData/records/never/").status_code == 404
    assert as_viewer.get("/outbox/public/Nowhere/").status_code == 404


RECORD = "/outbox/public/Billing_OutboxData/records/pending%201/"
WRITTEN: list[dict[str, Any]] = [
    {
        "MessageId": "sent 1",
        "Headers": {"NServiceBus.EnclosedMessageTypes": "Shop.Charged", "NServiceBus.ContentType": "application/json",
                    "Shop.Name": "Ana <i>Kovač", "Shop.<u>": "1"},
        "Body": base64.b64encode(b'{"card": "4111 1111", "said": "<s>no"}').decode(),
        "Options": {"Destination": "Sales", "DelayDeliveryFor": "00:05:00"},
    },
    {"MessageId": "sent 2", "Headers": {"Shop.Ref": "B-7"}, "Body": base64.b64encode(b"\x00\xffZ" * 40_000).decode(),
     "Options": {"Destination": "Sales", "DeliverAt": "2031-01-02 03:04:05:000000 Z"}},
]  # fmt: skip


def written(look: Connection, messages: list[dict[str, Any]]) -> None:
    insert = 'insert into "Billing_OutboxData" ("MessageId", "Operations") values (%s, %s)'
    look.run(insert, ["pending 1", json.dumps(messages)])


def test_a_record_s_messages_are_read_one_by_one(as_viewer: Client, billing: Endpoint, look: Connection) -> None:
    """Each with its headers and its body, in the views of a message's page; nothing is markup."""
    written(look, WRITTEN)
    page = shown(as_viewer, RECORD)
    said = html.unescape(page)
    for each in ("4111 1111", "Ana <i>Kovač", "Shop.<u>", "delayed by 5 min", "message 1 of 2"):
        assert each in said.replace("\u00a0", " "), each
    assert re.search(r"due <time[^>]*>in \d", said)
    assert "<i>Kovač" not in page
    assert "<s>no" not in page
    assert "Shop.<u>" not in page
    assert "B-7" not in page
    (second,) = re.findall(r'href="([^"]*send=2[^"]*)#message"', page)
    page = text(as_viewer, RECORD + html.unescape(second))
    assert "B-7" in page
    assert "4111" not in page
    assert "120,000" in page
    assert "Show the next 64 kB" in page
    for odd in ("?send=3", "?send=0", "?send=x", "?send=-1", "?body=nothing&from=99999999999"):
        assert "message 1 of 2" in text(as_viewer, RECORD + odd)


def test_record_content_needs_the_read_right_and_is_masked(
    as_viewer: Client, billing: Endpoint, look: Connection
) -> None:
    written(look, WRITTEN)
    counter = Client()
    counter.force_login(User.objects.create_user("counter"))
    page = text(counter, RECORD)
    assert content_access.REFUSED in page
    assert "Shop.Name" in page
    assert "Kovač" not in page
    assert "4111" not in page
    for view in ("raw", "hex", "bodystring"):
        assert "4111" not in text(counter, f"{RECORD}?body={view}")
    MaskingRule.objects.create(name="cards", kind="path", pattern="card", types=[])
    MaskingRule.objects.create(name="names", kind="header", pattern="Shop.Name", types=[])
    for view in ("pretty", "raw", "hex", "bodystring"):
        page = text(as_viewer, f"{RECORD}?body={view}")
        assert "4111" not in page
        assert "34 31 31 31" not in page
        assert "Kovač" not in page
        assert "Shop.Name" in page


def test_a_record_of_very_many_messages_lists_the_first(as_viewer: Client, billing: Endpoint, look: Connection) -> None:
    written(look, [{"MessageId": f"sent {i}", "Headers": {f"h{j}": "x" for j in range(3)}} for i in range(1_000)])
    page = text(as_viewer, RECORD)
    assert "800 more messages of this record cannot be listed" in page
    assert page.count("as it will be sent") == 1


@pytest.mark.parametrize("message_id", ["/", "..", ".", "a/b", "?x=1", "#", "%2F", "~", "\n", "x" * 200, "<b>'\""])
def test_a_record_of_any_id_has_a_page(
    as_operator: Client, billing: Endpoint, look: Connection, message_id: str
) -> None:
    insert = 'insert into "Billing_OutboxData" ("MessageId", "Operations") values (%s, %s)'
    look.run(insert, [message_id, '[{"MessageId": "sent", "Body": "MQ==", "Options": {"Destination": "Sales"}}]'])
    page = shown(as_operator, "/outbox/public/Billing_OutboxData/")
    (address,) = re.findall(r'href="([^"]*/records/[^"]*)"', page)
    assert "sent" in text(as_operator, html.unescape(address))
    typed = {"reason": "it stays down", "id": message_id}
    assert as_operator.post("/outbox/public/Billing_OutboxData/dispatch/", typed).status_code == 303
    assert look.value('select count(*) from "Sales"') == 1


@pytest.mark.parametrize("one", [True, False])
def test_sending_by_hand_is_once_and_audited(
    as_operator: Client, billing: Endpoint, look: Connection, one: bool
) -> None:
    look.run(PENDING.format('"Billing_OutboxData"'), [3])
    typed = {"reason": "it stays down", **({"id": "pending 2"} if one else {})}
    for _ in range(2):
        assert as_operator.post("/outbox/public/Billing_OutboxData/dispatch/", typed).status_code == 303
    bodies = [bytes(row.body) for row in look.all('select body from "Sales" order by seq')]
    assert bodies == ([b"2"] if one else [b"1", b"2", b"3"])
    (entry,) = AuditEntry.objects.filter(verb="dispatch")
    many = 1 if one else 3
    assert (entry.subject, entry.reason) == ('"public"."Billing_OutboxData"', "it stays down")
    assert entry.after == {"records": many, "messages": many}


def test_duplicates_are_counted_and_say_since_when(as_viewer: Client, billing: Endpoint, tmp_path: Path) -> None:
    """Summed over an endpoint's processes; counting begins with the first report of none."""
    assert "unknown: none of its processes has reported yet" in text(as_viewer, "/outbox/public/Billing_OutboxData/")
    for caught in (0, 2, 1):
        counters = Counters(InFlightFile(tmp_path / str(caught)))
        reporter = Reporter(billing, counters, lambda row: None, lambda: "running")
        reporter.beat()
        for _ in range(caught):
            counters.duplicate()
        reporter.beat()
        reporter.beat()
    assert re.search(r"Duplicates caught 3 ?, counted by processes .* since .*, the last", words(as_viewer))
    assert "since" in text(as_viewer)


def words(client: Client) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text(client, "/outbox/public/Billing_OutboxData/")).split())


def test_viewer_sends_nothing(as_viewer: Client, billing: Endpoint, look: Connection) -> None:
    look.run(PENDING.format('"Billing_OutboxData"'), [1])
    as_viewer.post("/outbox/public/Billing_OutboxData/dispatch/", {})
    assert look.value('select count(*) from "Sales"') == 0
    assert not AuditEntry.objects.exists()


def test_a_table_of_others_is_only_looked_at(as_operator: Client, look: Connection) -> None:
    postgresql().outbox_store(Address("public", "Partner_OutboxData")).create(look)
    look.run('alter table "Partner_OutboxData" drop column "CreatedAt"')
    look.run(PENDING.format('"Partner_OutboxData"'), [2])
    page = text(as_operator)
    assert "2 records of Partner wait to be sent, since when is not known" in page
    assert "set in its code" in page
    assert "it is only looked at" in text(as_operator, "/outbox/public/Partner_OutboxData/")
    as_operator.post("/outbox/public/Partner_OutboxData/dispatch/", {})
    assert look.value('select count(*) from "Sales"') == 0


@pytest.fixture
def partner(look: Connection) -> Connection:
    """Two records of a foreign outbox, whose input queue is known."""
    postgresql().outbox_store(Address("public", "Partner_OutboxData")).create(look)
    look.run('alter table "Partner_OutboxData" drop column "CreatedAt"')
    look.run(PENDING.format('"Partner_OutboxData"'), [2])
    Queue.objects.create(schema="public", table="Sales", kind=TableKind.INPUT)
    return look


def send(client: Client) -> int:
    return client.post("/outbox/public/Partner_OutboxData/dispatch/", {"reason": "it stays down"}).status_code


def switch(client: Client, allow: str) -> int:
    return client.post("/outbox/public/Partner_OutboxData/allow/", {"allow": allow, "reason": "agreed"}).status_code


def test_sending_from_a_table_of_others_is_switched_on_for_it_and_audited(
    as_operator: Client, partner: Connection
) -> None:
    assert "sending from here is off" in text(as_operator, "/outbox/public/Partner_OutboxData/")
    assert switch(as_operator, "yes") == 303
    (entry,) = AuditEntry.objects.filter(noun="outbox")
    assert (entry.verb, entry.subject, entry.reason) == ("set", '"public"."Partner_OutboxData"', "agreed")
    assert (entry.before, entry.after) == ({"dispatch_allowed": False}, {"dispatch_allowed": True})
    assert "sending from here is on" in text(as_operator, "/outbox/public/Partner_OutboxData/")
    send(as_operator)
    send(as_operator)
    assert [bytes(row.body) for row in partner.all('select body from "Sales" order by seq')] == [b"1", b"2"]
    switch(as_operator, "no")
    partner.run('update "Partner_OutboxData" set "Dispatched" = false')
    send(as_operator)
    assert partner.value('select count(*) from "Sales"') == 2


def test_a_switch_is_undone(as_operator: Client, partner: Connection) -> None:
    place = "/outbox/public/Partner_OutboxData/"
    notice = answer(as_operator, as_operator.post(f"{place}allow/", {"allow": "yes", "next": place}))
    press(as_operator, notice, "Undo")
    assert "sending from here is off" in text(as_operator, place)


def test_switching_dispatch_needs_the_settings_right(as_viewer: Client, partner: Connection) -> None:
    switch(as_viewer, "yes")
    assert not ForeignOutbox.objects.filter(dispatch_allowed=True).exists()
    assert "Switching it needs the right" in text(as_viewer, "/outbox/public/Partner_OutboxData/")


def test_an_outbox_of_ours_has_no_such_switch(as_operator: Client, billing: Endpoint) -> None:
    as_operator.post("/outbox/public/Billing_OutboxData/allow/", {"allow": "yes"})
    assert not ForeignOutbox.objects.exists()


KEEPING = {"relay": "on", "relay_after": "10 min", "clean_up": "on", "keep": "14 days", "reason": "it is retired"}


def keeping(client: Client, **typed: str) -> str:
    answer = client.post("/outbox/public/Partner_OutboxData/keep/", typed, follow=True)
    return html.unescape(answer.content.decode()).replace("\u00a0", " ")


def test_relay_and_clean_up_are_switched_each_by_itself_and_audited(as_operator: Client, partner: Connection) -> None:
    assert "relay off, clean-up off" in text(as_operator, "/outbox/public/Partner_OutboxData/")
    assert "The relay is on, clean-up is on." in keeping(as_operator, **KEEPING)
    (entry,) = AuditEntry.objects.filter(noun="outbox")
    assert (entry.verb, entry.subject, entry.reason) == ("set", '"public"."Partner_OutboxData"', "it is retired")
    before, after = entry.before or {}, entry.after or {}
    assert (before["relay_seconds"], after["relay_seconds"]) == (None, 600)
    assert (before["keep_seconds"], after["keep_seconds"]) == (None, 14 * 86_400)
    page = text(as_operator, "/outbox/public/Partner_OutboxData/")
    assert "relay on, clean-up on" in page
    assert "Not looked at yet" in page
    assert 'value="10 min"' in page
    assert "It was so already." in keeping(as_operator, **KEEPING)
    assert "The relay is off, clean-up is on." in keeping(as_operator, **{**KEEPING, "relay": ""})
    assert AuditEntry.objects.filter(noun="outbox").count() == 2
    row = ForeignOutbox.objects.get()
    assert (row.relay_seconds, row.keep_seconds, row.dispatch_allowed) == (None, 14 * 86_400, False)
    assert partner.value('select count(*) from "Partner_OutboxData" where not "Dispatched"') == 2


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"relay_after": "1 s"}, "1 min at least"),
        ({"keep": "1 min"}, "1 d"),
        ({"keep": "soon"}, "is not a duration"),
        ({"relay_after": ""}, "required"),
    ],
)
def test_times_that_would_do_harm_are_refused(
    as_operator: Client, partner: Connection, typed: dict[str, str], why: str
) -> None:
    page = keeping(as_operator, **{**KEEPING, **typed})
    assert "Nothing was changed" in page
    assert why in page
    assert not ForeignOutbox.objects.exists()


def test_switching_relay_and_clean_up_needs_the_settings_right(as_viewer: Client, partner: Connection) -> None:
    assert "needs the right" in keeping(as_viewer, **KEEPING)
    assert not ForeignOutbox.objects.exists()
    assert "Switching these needs the right" in text(as_viewer, "/outbox/public/Partner_OutboxData/")


def test_an_outbox_of_ours_is_kept_by_its_endpoint(as_operator: Client, billing: Endpoint) -> None:
    as_operator.post("/outbox/public/Billing_OutboxData/keep/", KEEPING)
    assert not ForeignOutbox.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ('set "Operations" = jsonb_set("Operations", \'{0,Options,Destination}\', \'"error"\')', "error"),
        (
            'set "Operations" = jsonb_set("Operations", \'{0,Options,DelayDeliveryFor}\', \'"00:01:00"\')',
            "delayed messages",
        ),
    ],
)
def test_foreign_operations_choose_no_other_destination(
    as_operator: Client, partner: Connection, wrong: str, says: str
) -> None:
    switch(as_operator, "yes")
    partner.run(f'update "Partner_OutboxData" {wrong}')
    send(as_operator)
    assert says in text(as_operator, "/outbox/public/Partner_OutboxData/")
    assert partner.value('select count(*) from "Sales"') == 0
    assert partner.value('select count(*) from "Partner_OutboxData" where "Dispatched"') == 0


def test_code_of_others_is_not_run_by_marking(as_operator: Client, partner: Connection) -> None:
    switch(as_operator, "yes")
    partner.run("create role stranger")
    try:
        partner.run(
            "create function public.theirs() returns trigger language plpgsql as $$ begin return new; end $$;"
            "alter function public.theirs() owner to stranger;"
            'create trigger theirs before update on "Partner_OutboxData" for each row execute function public.theirs()'
        )
        send(as_operator)
        assert "Code of others would run" in text(as_operator, "/outbox/public/Partner_OutboxData/")
        assert partner.value('select count(*) from "Sales"') == 0
    finally:
        partner.run("drop owned by stranger cascade; drop role stranger")


def test_a_destination_that_is_gone_is_said_and_nothing_is_marked(
    as_operator: Client, billing: Endpoint, look: Connection
) -> None:
    look.run(PENDING.format('"Billing_OutboxData"'), [1])
    look.run('drop table "Sales"')
    answer = as_operator.post("/outbox/public/Billing_OutboxData/dispatch/", {}, follow=True)
    assert "Nothing was sent. pending 1" in html.unescape(answer.content.decode())
    assert look.value('select count(*) from "Billing_OutboxData" where "Dispatched"') == 0


def test_a_missing_index_is_said_and_not_paid_for(as_viewer: Client, billing: Endpoint, look: Connection) -> None:
    look.run('drop index "Billing_OutboxData_Dispatched"')
    assert "without an index on Dispatched each look would read all of it" in text(as_viewer)


def test_unreadable_record_is_shown_as_unreadable(as_viewer: Client, billing: Endpoint, look: Connection) -> None:
    for number, held in enumerate(['{"a": 1}', "[1]", '[{"MessageId": null, "Options": 3}]', '"x"', "null"]):
        row: list[Any] = [f"odd {number}", held]
        look.run('insert into "Billing_OutboxData" ("MessageId", "Operations") values (%s, %s::jsonb)', row)
        assert "cannot be read" in text(as_viewer, f"/outbox/public/Billing_OutboxData/records/odd%20{number}/")
    assert "unreadable" in text(as_viewer, "/outbox/public/Billing_OutboxData/")


def test_transaction_in_doubt_is_shown_with_its_age_and_waiters(
    as_viewer: Client, look: Connection, console_database: str, connect: Connect
) -> None:
    """Lists this server's databases; a transaction is late only once recovery was due."""
    branch = Branch("a" * 32, "b" * 32, "stock")
    two_phase = postgresql().two_phase_commit
    look.run("create table public.charges (number integer primary key)")
    worker, waiter = connect(console_database), connect(console_database)
    two_phase.begin(worker, branch)
    worker.run("insert into public.charges (number) values (7)")
    two_phase.prepare(worker, branch)
    insert = threading.Thread(target=waiter.run, args=["insert into public.charges (number) values (7)"])
    insert.start()
    try:
        until(lambda: held_up(look) == 1)
        page = text(as_viewer)
        assert "public.charges" in page
        assert branch.id in page
        assert 'data-l="Waiting">1<' in page
        assert "No outbox table found" not in page
        assert "are in doubt" not in page
        assert rows.verdict([], [replace(each, age=timedelta(minutes=3)) for each in in_doubt.find(look, NOW)]) == (
            "warn",
            "1 transaction over several databases is in doubt",
        )
    finally:
        two_phase.rollback(worker, branch)
        insert.join(60)
    assert "In doubt" not in text(as_viewer)
