"""A queue's messages page by page: by key, harmless, and honest about how far it looked (C3)."""

import re
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.console.pagination import pack
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Queue
from tests.console.recorded import Recorded
from tests.console.sampled import sample

IDS = re.compile(r"/messages/([0-9a-f-]{36})/")


def page(client: Client, table: str = "Sales", schema: str = "public", status: int = 200, **query: str) -> str:
    response = client.get(f"/queues/{schema}/{table}/messages/", query)
    assert response.status_code == status
    return response.content.decode()


def follow(client: Client, table: str, rel: str = "next", **query: str) -> list[str]:
    """Every row id on every page from the first on."""
    seen, address = [], f"/queues/public/{table}/messages/?" + "&".join(f"{k}={v}" for k, v in query.items())
    while address:
        html = client.get(address).content.decode()
        seen += IDS.findall(html)
        found = re.search(rf'rel="{rel}" href="([^"]+)"', html)
        address = f"/queues/public/{table}/messages/" + found[1].replace("&amp;", "&") if found else ""
    return seen


def ids(recorded: Recorded, table: str, order: str = "seq", where: str = "true") -> list[str]:
    return [str(row.id) for row in recorded.connection.all(f'select id from "{table}" where {where} order by {order}')]


@pytest.mark.parametrize(("order", "key"), [("head", "seq"), ("newest", "seq desc")])
def test_all_pages_are_the_queue_in_order(looked_at: Recorded, order: str, key: str) -> None:
    assert follow(looked_at.operator, "Mailer", order=order) == ids(looked_at, "Mailer", key)


def test_all_pages_are_the_queue_also_where_many_have_one_seq(recorded: Recorded) -> None:
    """In a copy, or a table whose index on seq is not unique."""
    recorded.connection.run(
        'create table "Tied" as select id, expires, headers, body, 5 as seq from "Mailer" limit 120'
    )
    recorded.connection.run('create index on "Tied" (seq)')
    sample()
    assert follow(recorded.operator, "Tied") == ids(recorded, "Tied", "seq, id")
    assert follow(recorded.operator, "Tied", order="newest") == ids(recorded, "Tied", "seq desc, id desc")
    assert len(IDS.findall(page(recorded.operator, "Tied", after=pack(5, "no id")))) == 0


def test_a_position_is_said_and_can_be_typed(looked_at: Recorded) -> None:
    seq = looked_at.connection.value('select seq from "Mailer" order by seq offset 9 limit 1')
    html = page(looked_at.operator, "Mailer", q=f"seq:>{seq}")
    assert f"after {seq:,}" in html
    assert IDS.findall(html) == ids(looked_at, "Mailer", where=f"seq > {seq}")[:50]
    assert IDS.findall(page(looked_at.operator, "Mailer", q=f"seq:{seq}"))[0] == ids(looked_at, "Mailer")[9]
    assert IDS.findall(page(looked_at.operator, "Mailer", q=f"seq:<{seq}"))[0] == ids(looked_at, "Mailer")[8]


def test_only_expired_says_what_it_looked_through(looked_at: Recorded) -> None:
    html = page(looked_at.operator, "Poison.Expires", q="is:expired")
    assert "Looked through 6 rows" in html
    assert len(IDS.findall(html)) >= 2


@pytest.mark.parametrize("typed", ["state:dead", "seq:>x", "nonsense:1", "seq:>99999999999999999999", "is:late"])
def test_invalid_filter_is_marked_and_searches_nothing(looked_at: Recorded, typed: str) -> None:
    html = page(looked_at.operator, q=typed)
    assert 'id="mqe"' in html
    assert not IDS.findall(html)


def test_the_start_of_bodies_on_request_only(looked_at: Recorded) -> None:
    assert "mono clip" not in page(looked_at.operator)
    html = page(looked_at.operator, cols="bodyline")
    assert "SKU-" in html.split("mono clip")[1]


@pytest.mark.parametrize(
    ("table", "query", "said"),
    [
        ("Shipping", {}, "Shipping is empty"),
        ("Mailer", {"q": "seq:>2000000000"}, "Nothing waits after 2,000,000,000"),
        ("Mailer", {"q": f"seq:>{2**63 - 1}"}, "Nothing waits after 9,223,372,036,854,775,807"),
        ("Mailer", {"q": "is:expired"}, "None of these has expired"),
        ("SubscriptionRouting", {}, "holds no messages to browse"),
    ],
)
def test_empty_is_said_in_the_words_of_its_reason(
    looked_at: Recorded, table: str, query: dict[str, Any], said: str
) -> None:
    assert said in page(looked_at.operator, table, **query)


def test_an_empty_error_queue_says_where_failures_go(recorded: Recorded) -> None:
    recorded.connection.run("delete from error")
    Queue.objects.create(schema="public", table="error", kind="error", ingest=True)
    assert "moved into the" in page(recorded.operator, "error")


def test_a_table_that_is_gone_and_one_that_never_was(recorded: Recorded) -> None:
    Queue.objects.create(schema="public", table="Mailer", kind="input")
    recorded.connection.run('drop table "Mailer"')
    assert "This table is gone" in page(recorded.operator, "Mailer", status=404)
    assert "No queue of this name" in page(recorded.operator, "Nowhere", status=404)
    assert "No queue of this name" in page(recorded.operator, "pg_class", schema="pg_catalog", status=404)


def test_hostile_names(looked_at: Recorded) -> None:
    from pgqueue_admin.console import url_converters

    names = ["<script>alert(1)</script>", "../etc/passwd", '"quoted" name', "a/b~c", ".hidden", "Zażółć 🐘"]
    for name in names:
        quoted = name.replace('"', '""')
        looked_at.connection.run(
            f'create table public."{quoted}" '
            "(id uuid primary key, expires timestamp, headers text, body bytea, seq serial)"
        )
        looked_at.connection.run(f"""insert into public."{quoted}" values (gen_random_uuid(), null, '{{}}', '')""")
        html = looked_at.operator.get(url_converters.queue(Address("public", name), "messages")).content.decode()
        assert "<script>alert" not in html
        assert len(set(IDS.findall(html))) == 1


def test_wide_seqs_and_odd_times(looked_at: Recorded) -> None:
    assert "5,000,000,000" in page(looked_at.operator, "Poison.WideSeq")
    assert "infinity" in page(looked_at.operator, "Poison.Expires")


def test_a_role_that_may_not_read_it_is_told_so(looked_at: Recorded) -> None:
    from django.db import connections

    looked_at.connection.run('create role "looker" login; grant usage on schema public to "looker"')
    entry = connections["queues"].settings_dict
    before = {name: entry[name] for name in ("USER", "PASSWORD")}
    looked_at.connection.run("""alter role "looker" password 'looks'""")
    entry.update(USER="looker", PASSWORD="looks")
    try:
        html = page(looked_at.operator, "Mailer")
        looked_at.connection.run('grant select on "Mailer" to "looker"')
        granted = page(looked_at.operator, "Mailer")
    finally:
        entry.update(before)
        looked_at.connection.run('drop owned by "looker"; drop role "looker"')
    assert "The database role may not do this." in html
    assert IDS.findall(granted)
