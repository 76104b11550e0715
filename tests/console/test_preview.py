"""What the confirmation of an act says of its frozen set: sums that are those of the set, whatever is in it."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from pgqueue_admin.archive import store
from pgqueue_admin.archive.model import DeadMessage
from pgqueue_admin.dialects import Address, Connection
from tests.console.pages import Connect, shown
from tests.console.test_operation import choose

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
Lines = list[tuple[str, str, int]]


@pytest.fixture
def archive(console_database: str, connect: Connect) -> Connection:
    return connect(console_database)


def bury(archive: Connection, number: int, schema: str, table: str = "Billing", **facts: object) -> None:
    target = Address(schema, table)
    for _ in range(number):
        store.bury(archive, DeadMessage(queue=f'"{schema}"."{table}"', target=target, **{"died_at": NOON, **facts}))  # type: ignore[arg-type]


def preview(client: Client, kind: str, q: str = "state:dead") -> str:
    return shown(client, choose(client, kind, all="matching", q=q)["Location"])


def lines(html: str) -> Lines:
    """Label, value, count."""
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
    """Sixty combinations, of which the rare ones are the oldest and the newest; names are folded as they are shown."""
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


def test_what_names_no_queue_lies_in_the_lease_queue(archive: Connection, as_operator: Client) -> None:
    archive.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        " values (now(), '{}', 'rejected', 'test')"
    )
    html = preview(as_operator, "discard")
    assert "Discard 1 message of lease queue in" in html
    assert ("Of", "lease queue", 1) in lines(html)
