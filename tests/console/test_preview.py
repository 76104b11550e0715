"""The confirmation of an act describes its frozen set, which lapses if nobody starts it."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.console.operations import labels
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import AuditEntry, Endpoint, Operation, Queue
from tests.console.operating import choose, follow, start
from tests.console.pages import Connect, matched, shown
from tests.console.recorded import Recorded

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
Lines = list[tuple[str, str, int]]


@pytest.fixture
def archive(console_database: str, connect: Connect) -> Connection:
    return connect(console_database)


def bury(archive: Connection, number: int, schema: str, table: str = "Billing", **facts: Any) -> None:
    target = Address(schema, table)
    dead = DeadMessage(queue=f'"{schema}"."{table}"', target=target, **{"died_at": NOON, **facts})
    for _ in range(number):
        store.archive_failed(archive, dead)


def preview(client: Client, kind: str, q: str = "state:dead") -> str:
    return shown(client, choose(client, kind, all="matching", q=q)["Location"])


def lines(html: str) -> Lines:
    """Label, value and count of each line."""
    found = re.findall(
        r'<th scope="row">([^<]*)</th>\s*<td class="wrap-any">(.*?)</td>\s*<td class="num">([\d,]+)<', html
    )
    return [(label, value, int(count.replace(",", ""))) for label, value, count in found]


@pytest.mark.parametrize(("kind", "label", "to"), [("retry", "Into", "to"), ("discard", "Of", "of")])
def test_tables_of_one_name_are_counted_apart_and_named_with_their_schema(
    archive: Connection, as_operator: Client, kind: str, label: str, to: str
) -> None:
    bury(archive, 3, "public")
    bury(archive, 2, "legacy")
    bury(archive, 1, "public", "Sales")
    html = preview(as_operator, kind)
    counted = [line for line in lines(html) if line[0] == label]
    assert counted == [(label, "public.Billing", 3), (label, "legacy.Billing", 2), (label, "Sales", 1)]
    assert f"6 messages {to} Sales, legacy.Billing and public.Billing in" in html


def test_sums_and_times_are_those_of_the_set_however_many_kinds_it_has(
    archive: Connection, as_operator: Client
) -> None:
    """Sixty combinations, the rare ones being the oldest and newest; names are grouped as they are shown."""
    for number in range(60):
        died_at = NOON + timedelta(days=number)
        more = 1 if number in (0, 59) else 2
        bury(
            archive,
            more,
            "public",
            died_at=died_at,
            message_type=f"Ns{number % 2}.T{number // 20}",
            exception_type=f"E{number}",
        )
    html = preview(as_operator, "discard")
    kinds = {label: [line[2] for line in lines(html) if line[0] == label] for label in ("Of", "Type", "Died of")}
    assert kinds == {"Of": [118], "Type": [40, 39, 39], "Died of": [2, 2, 2, 2, 2, 108]}
    assert ("Died of", "55 more", 108) in lines(html)
    died = re.findall(r'<time datetime="([^"]*)"', html.partition(">Died</th>")[2])[:2]
    assert died == ["2026-03-14T12:00:00Z", "2026-05-12T12:00:00Z"]


def test_the_lease_queue_is_told_from_a_table_of_its_name(console_database: str) -> None:
    """An empty name is no address and has no schema."""
    said = labels.tables(["", '"public"."lease queue"'])
    assert list(said.values()) == ["lease queue", "public.lease queue"]


def test_messages_without_a_queue_count_as_lease_queue(archive: Connection, as_operator: Client) -> None:
    archive.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        " values (now(), '{}', 'rejected', 'test')"
    )
    html = preview(as_operator, "discard")
    assert "Discard 1 message of lease queue in" in html
    assert ("Of", "lease queue", 1) in lines(html)


def test_leaving_a_frozen_set(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    html = follow(recorded.operator, recorded.operator.post(f"{frozen['Location']}cancel/"))
    assert "Nothing was done." in html


def test_lapsed_preview_starts_nothing_and_links_to_its_messages(recorded: Recorded) -> None:
    frozen = choose(recorded.operator, "retry", all="matching", q="state:dead error:RefusedException")
    before = recorded.rows("Billing")
    Operation.objects.update(created_at=timezone.now() - timedelta(hours=3))
    html = follow(recorded.operator, start(recorded.operator, frozen["Location"], reason="at last"))
    assert "was not started within 30 minutes. Choose the messages again." in html
    assert "every message is as it was" in html
    again = matched(r'<a class="b go" href="(/archive/[^"]*)">Choose again', html)
    assert "Retry" in shown(recorded.operator, unescape(again))
    assert recorded.rows("Billing") == before
    assert not AuditEntry.objects.filter(verb="retry").exists()


def test_a_preview_whose_person_has_lost_the_right_does_nothing(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    User.objects.get(username="ana").user_permissions.clear()
    html = follow(recorded.operator, start(recorded.operator, frozen["Location"]))
    assert "Nothing was retried: needs the right “Can retry" in html
    assert "frozen, nothing done yet" in html
    assert Operation.objects.get().state == "frozen"


def test_messages_whose_queue_is_gone_are_told_before(recorded: Recorded, cards: list[int]) -> None:
    recorded.connection.run('drop table "Billing" cascade')
    html = follow(recorded.operator, choose(recorded.operator, "retry", cards))
    assert "Its queue is gone: there is no queue table" in html
    assert "will fail and stay dead" in html


def test_a_queue_where_nobody_receives_is_told_before(recorded: Recorded, cards: list[int]) -> None:
    address = recorded.operator.post("/operations/", {"act": "retry", "id": cards})["Location"]
    assert "nobody" not in shown(recorded.operator, address)
    endpoint = Endpoint.objects.create(name="Shop.Billing", schema="public", table="Billing")
    Queue.objects.create(schema="public", table="Billing", kind="input", endpoint=endpoint.name)
    for page in (address, f"/archive/{cards[0]}/"):
        html = shown(recorded.operator, page)
        assert ": nobody receives." in html
        assert 'href="/queues/public/Billing/#consumers"' in html
    Endpoint.objects.update(paused=True)
    assert ": its receivers are paused." in shown(recorded.operator, address)


def test_samples_are_spread_over_the_set(recorded: Recorded) -> None:
    every = recorded.dead(60)
    html = follow(recorded.operator, choose(recorded.operator, "discard", every))
    shown_ones = [int(number) for number in re.findall(r'href="/archive/(\d+)/', html)]
    oldest_first = sorted(every, key=every.index, reverse=True)
    assert len(shown_ones) == 10
    assert (shown_ones[0], shown_ones[-1]) == (oldest_first[0], oldest_first[-1])
    places = [oldest_first.index(each) for each in shown_ones]
    assert max(after - before for before, after in pairwise(places)) <= 7
