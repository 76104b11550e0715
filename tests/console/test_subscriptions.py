"""Subscriptions: who receives which event, and those that lead nowhere (wire sheet 4)."""

import json
import re

import pytest
from django.test import Client

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry
from tests.console.pages import Connect
from tests.console.recorded import Recorded

ROUTING = Address("public", "SubscriptionRouting")


def text(client: Client, **query: str) -> str:
    response = client.get("/subscriptions/", query)
    assert response.status_code == 200
    return response.content.decode().replace("\u00a0", " ").replace("<wbr>", "")


def subscribe(
    recorded: Recorded, queue: str, endpoint: str = "Ghost", topic: str = "Shop.Messages.Events.OrderPlaced"
) -> None:
    row = {"queueaddress": queue, "endpoint": endpoint, "topic": topic}
    recorded.connection.run(postgresql().subscription.subscribe(table=ROUTING), row)


def publish(recorded: Recorded, *types: str) -> None:
    told = {"NServiceBus.MessageIntent": "Publish", "NServiceBus.EnclosedMessageTypes": ";".join(types)}
    send = postgresql().queue.send(table=Address("public", "audit"))
    recorded.connection.run(
        send, {"id": recorded.connection.value("select gen_random_uuid()"), "ttbr_ms": None, "body": b"{}",
               "headers": json.dumps(told | {"NServiceBus.ProcessingEnded": ""})}
    )  # fmt: skip


def test_the_recorded_ones_are_all_there(looked_at: Recorded) -> None:
    html = text(looked_at.viewer)
    assert "6 endpoints subscribe to 6 events; every queue is there" in html
    assert html.count('<tr role="row" class="">') == 10
    assert 'href="/queues/Legacy/Invoicing/"' in html
    assert "To unsubscribe" in html
    assert "Unsubscribe: needs the right" in html
    assert "None of these." in html
    assert "from public.SubscriptionRouting" in " ".join(re.sub("<[^>]+>", "", html).split()), (
        "a schema has one of its own"
    )


def cells(html: str) -> dict[str, dict[str, str]]:
    """The text under each endpoint, by event."""
    table = html[html.index('aria-label="Who gets which event') :]
    heads, *lines = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in table.split("<tr>")[1:]]
    said = [[re.sub(r"<[^>]*>", "", cell).strip() for cell in line] for line in [heads, *lines]]
    return {line[0]: dict(zip(said[0][1:], line[1:], strict=True)) for line in said[1:]}


def test_the_matrix_says_what_the_list_says(looked_at: Recorded) -> None:
    found = cells(text(looked_at.viewer, **{"as": "matrix"}))
    assert sum(word == "gets it" for event in found.values() for word in event.values()) == 10
    assert len(found) == 6
    assert {name for name, word in found["OrderPlaced"].items() if word} == listed(looked_at, "OrderPlaced")
    html = text(looked_at.viewer, q="type:OrderPlaced", **{"as": "matrix"})
    assert list(cells(html)) == ["OrderPlaced"]
    assert 'href="?q=type%3AOrderPlaced">List</a>' in html


def listed(looked_at: Recorded, event: str) -> set[str]:
    html = text(looked_at.viewer, q=f"type:{event}")
    return set(re.findall(r'data-l="Subscriber">(.*?)</td>', html))


def test_the_matrix_marks_what_leads_nowhere_and_has_room_for_some_tens(recorded: Recorded) -> None:
    subscribe(recorded, '"public"."Ghost"', "Mailer")
    html = text(recorded.operator, **{"as": "matrix"})
    assert cells(html)["OrderPlaced"]["Mailer"] == "no such queue"
    for number in range(41):
        subscribe(recorded, "Mailer", f"Many{number}")
    html = text(recorded.operator, **{"as": "matrix"})
    assert "A matrix has room for 40 of each" in html
    assert "Many40" in text(recorded.operator)


def test_types_of_one_short_name_are_told_apart(recorded: Recorded) -> None:
    subscribe(recorded, "Mailer", topic="Other.OrderPlaced")
    html = text(recorded.operator, q="OrderPlaced", **{"as": "matrix"})
    told = {re.sub(r"\s+", " ", said) for said in cells(html)}
    assert told == {"OrderPlaced Shop.Messages.Events.OrderPlaced", "OrderPlaced Other.OrderPlaced"}


@pytest.mark.parametrize(
    ("typed", "count"),
    [("Legacy", 1), ("address:shipping", 2), ("type:OrderPlaced", 3), ("endpoint:Sales type:billed", 1)],
)
def test_the_filter_narrows_and_says_what_it_covered(looked_at: Recorded, typed: str, count: int) -> None:
    html = text(looked_at.operator, q=typed)
    assert html.count('<tr role="row" class="">') == count
    assert "of 10, from" in html


def test_filter_without_matches_or_with_an_unknown_field_says_so(looked_at: Recorded) -> None:
    assert "No subscription matches" in text(looked_at.second, q="nobody")
    assert "There is no field owner:. Use one of type:, endpoint:" in text(looked_at.second, q="owner:ana")


def test_subscription_to_a_missing_queue_comes_first(recorded: Recorded) -> None:
    subscribe(recorded, '"public"."Ghost"')
    html = text(recorded.operator)
    assert "1 subscription leads to a queue that does not exist" in html
    assert "this queue does not exist" in html
    assert html.index("Ghost") < html.index("Billing")


def test_an_address_that_names_nothing_and_one_that_differs_in_case(recorded: Recorded) -> None:
    subscribe(recorded, '""."x"', "Broken")
    subscribe(recorded, '"public"."mailer"', "Twin")
    html = text(recorded.operator)
    assert "2 subscriptions lead to a queue that does not exist" in html
    assert "differs in case only" in html


def test_a_catch_all_is_noticed(recorded: Recorded) -> None:
    subscribe(recorded, "Mailer", "Nosy", "System.Object")
    assert "gets every event that is published" in text(recorded.operator)


def test_published_event_without_subscribers_is_listed(recorded: Recorded) -> None:
    publish(recorded, "Shop.Messages.Events.CartLeft, Shop", "Shop.Messages.Events.IEvent, Shop")
    publish(recorded, "Shop.Messages.Events.OrderMoved, Shop", "Shop.Messages.Events.IOrderEvent, Shop")
    html = text(recorded.operator)
    assert "CartLeft" in html
    assert "no subscriber" in html
    assert "OrderMoved" not in html, "a subscriber of its interface hears it"


def test_page_without_subscriptions_or_without_a_table_says_so(recorded: Recorded) -> None:
    recorded.connection.run('delete from "SubscriptionRouting"')
    assert "Nobody subscribes to an event" in text(recorded.operator)
    subscribe(recorded, "Mailer", "Mailer")
    assert "1 endpoint subscribes to 1 event; every queue is there" in text(recorded.operator)
    recorded.connection.run('drop table "SubscriptionRouting"')
    assert "No subscription table was found" in text(recorded.operator)


def test_a_database_that_is_down(as_viewer: Client) -> None:
    from tests.console.sampled import elsewhere

    with elsewhere("queues", PORT=1):
        assert "Subscriptions cannot be read now" in text(as_viewer)


def test_hostile_rows_stay_text(recorded: Recorded) -> None:
    subscribe(recorded, '"x<script>alert(1)</script>"', "<script>alert(2)</script>", "T<script>alert(3)</script>")
    assert "<script>alert" not in text(recorded.operator)


def row_of(recorded: Recorded, **changes: str) -> dict[str, str]:
    found = recorded.connection.one('select * from "SubscriptionRouting" order by endpoint, topic limit 1')
    assert found is not None
    return {"schema": "public", "table": "SubscriptionRouting", **found._asdict(), **changes}


def number(recorded: Recorded) -> int:
    return recorded.rows("SubscriptionRouting")


def test_unsubscribe_asks_first_and_is_audited(recorded: Recorded) -> None:
    before, row = number(recorded), row_of(recorded)
    assert "Unsubscribe…" in text(recorded.operator)
    asked = recorded.operator.post("/subscriptions/unsubscribe/", row).content.decode()
    assert "nothing done yet" in asked
    assert "stops receiving it within 5 s" in asked
    assert number(recorded) == before
    done = recorded.operator.post("/subscriptions/unsubscribe/", {**row, "sure": "yes", "reason": "gone"}, follow=True)
    assert f"1 subscription of {row['endpoint']} ended" in done.content.decode()
    assert number(recorded) == before - 1
    entry = AuditEntry.objects.get(verb="unsubscribe")
    assert (entry.who, entry.subject, entry.reason) == ("ana", '"public"."SubscriptionRouting"', "gone")
    assert entry.before == {name: row[name] for name in ("endpoint", "topic", "queueaddress")}


def ended(recorded: Recorded) -> tuple[dict[str, str], str]:
    """Unsubscribe; return the row and the address of the undo."""
    row = row_of(recorded)
    recorded.operator.post("/subscriptions/unsubscribe/", {**row, "sure": "yes", "reason": "gone"})
    return row, f"/subscriptions/undo/{AuditEntry.objects.get(verb='unsubscribe').pk}/"


def test_an_end_is_taken_back_from_the_audit(recorded: Recorded) -> None:
    before = recorded.connection.all('select * from "SubscriptionRouting" order by 1, 2, 3')
    row, path = ended(recorded)
    assert f'action="{path}"' in recorded.operator.get("/audit/").content.decode()
    assert path not in recorded.viewer.get("/audit/").content.decode()
    assert recorded.viewer.post(path).status_code == 303
    assert number(recorded) == len(before) - 1
    assert f"{row['endpoint']} is subscribed again" in recorded.operator.post(path, follow=True).content.decode()
    assert recorded.connection.all('select * from "SubscriptionRouting" order by 1, 2, 3') == before
    entry = AuditEntry.objects.get(verb="undo")
    assert entry.after == {name: row[name] for name in ("endpoint", "topic", "queueaddress")}
    assert "has subscribed to it since" in recorded.operator.post(path, follow=True).content.decode()
    assert number(recorded) == len(before)


def test_an_end_is_not_taken_back_where_publishers_would_fail(recorded: Recorded) -> None:
    subscribe(recorded, '"NoSuchQueue"', "AAA")
    row, path = ended(recorded)
    assert row["endpoint"] == "AAA"
    before = number(recorded)
    assert "whoever publishes would fail" in recorded.operator.post(path, follow=True).content.decode()
    assert number(recorded) == before
    assert not AuditEntry.objects.filter(verb="undo").exists()


def test_an_end_is_not_taken_back_where_code_of_others_would_run(recorded: Recorded) -> None:
    _, path = ended(recorded)
    before = number(recorded)
    for statement in (
        "create role stranger",
        "create schema stranger authorization stranger",
        "create function stranger.says() returns trigger language plpgsql as 'begin return new; end'",
        "alter function stranger.says() owner to stranger",
        'create trigger says before insert on "SubscriptionRouting" for each row execute function stranger.says()',
    ):
        recorded.connection.run(statement)
    try:
        said = recorded.operator.post(path, follow=True).content.decode()
        assert "Nothing was subscribed again" in said
        assert number(recorded) == before
    finally:
        recorded.connection.run("drop schema stranger cascade")
        recorded.connection.run("drop role stranger")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"queueaddress": "elsewhere"}, "is no longer there, or has another queue"),
        ({"table": "Sales"}, "Sales is no subscription table now"),
        ({"schema": "pg_catalog"}, "is not watched here"),
    ],
)
def test_unsubscribe_leaves_other_rows_and_tables(recorded: Recorded, changes: dict[str, str], said: str) -> None:
    before, row = number(recorded), row_of(recorded, **changes)
    answer = recorded.operator.post("/subscriptions/unsubscribe/", {**row, "sure": "yes"})
    assert answer.status_code == 422
    assert "Nothing was unsubscribed" in answer.content.decode()
    assert said in answer.content.decode()
    assert number(recorded) == before
    assert not AuditEntry.objects.filter(verb="unsubscribe").exists()


def test_locked_subscription_is_left_without_waiting(
    recorded: Recorded, recorded_console: str, connect: Connect
) -> None:
    row, other = row_of(recorded), connect(recorded_console)
    with other.transaction():
        other.run('update "SubscriptionRouting" set queueaddress = queueaddress')
        answer = recorded.operator.post("/subscriptions/unsubscribe/", {**row, "sure": "yes"})
    assert answer.status_code == 422


def test_unsubscribe_needs_its_right(recorded: Recorded) -> None:
    answer = recorded.viewer.post("/subscriptions/unsubscribe/", {**row_of(recorded), "sure": "yes"})
    assert answer.status_code == 403
    assert "Nothing was unsubscribed: needs the right" in answer.content.decode()
