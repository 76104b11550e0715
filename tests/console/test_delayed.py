"""The Delayed page: what is due later, whether somebody moves it, and messages paged by due time (issue: pages)."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from pgqueue_admin.console.delayed import due_histogram, rows
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Endpoint, LatestSample, Queue
from pgqueue_admin.monitor import delayed
from tests.console.recorded import Recorded
from tests.console.sampled import sample

IDS = re.compile(r"/messages/([0-9a-f-]{36})/")
MESSAGES = "/queues/public/Sales.Delayed/messages/"


def text(client: Client, address: str = "/delayed/", status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status
    return response.content.decode().replace("\u00a0", " ")


def kept(name: str, **figures: object) -> LatestSample:
    now = timezone.now()
    queue = Queue.objects.create(schema="public", table=name, kind="delayed")
    known = {"delayed": 3, "overdue": 0, "next_due_at": now + timedelta(minutes=5), **figures}
    return LatestSample.objects.create(queue=queue, at=now, changed_at=now, **known)


def test_page_without_a_delayed_table_says_so(as_viewer: Client) -> None:
    assert "No delayed table was found" in text(as_viewer)


def test_calm_while_all_is_moved_in_time(as_viewer: Client) -> None:
    kept("Sales.Delayed", overdue=1, next_due_at=timezone.now() - timedelta(seconds=30))
    html = text(as_viewer)
    assert "3 messages wait for a time; none is overdue" in html
    assert "no mover runs" not in html
    assert 'class="n "' in html


def test_a_mover_that_seems_dead_is_said_with_since_when(as_viewer: Client) -> None:
    kept("Sales.Delayed", overdue=2, next_due_at=timezone.now() - timedelta(hours=3))
    Queue.objects.create(schema="public", table="Sales", kind="input")
    html = text(as_viewer)
    assert "2 overdue in one table: no mover runs" in html
    assert "no mover runs" in html
    assert '<tr role="row" class="warn"' in html
    assert 'href="/queues/public/Sales/"' in html
    assert 'class="n mild" data-live="nav.delayed"' in html
    assert '<a href="/queues/public/Sales/#consumers">see who receives</a>' in html
    Endpoint.objects.create(name="Shop.Sales", table="Sales")
    Queue.objects.filter(table="Sales").update(endpoint="Shop.Sales")
    assert '<a href="/endpoints/Shop.Sales/">see why not, or start it</a>' in text(as_viewer)


def test_overdue_count_at_the_cap_says_at_least(as_viewer: Client) -> None:
    late = {"overdue": 10_000, "next_due_at": timezone.now() - timedelta(hours=3)}
    kept("Sales.Delayed", delayed=40_000, delayed_how="estimate", **late)
    html = text(as_viewer)
    assert "10,000+ overdue in one table" in html
    assert re.search(r'data-live="d\d+\.overdue"><b[^>]*><span[^>]*>10,000\+<', html)
    assert re.search(r'data-live="nav\.delayed"[^>]*>≈ 40,000<', html)


@pytest.mark.parametrize(
    ("figures", "said", "in_row"),
    [
        ({"delayed": 0}, None, "nothing"),
        ({"delayed": 3}, "never due", "never"),
        ({"delayed": None}, "not read", "not read"),
    ],
)
def test_page_says_nothing_delayed_only_where_that_is_known(
    as_viewer: Client, figures: dict[str, int | None], said: str | None, in_row: str
) -> None:
    """Rows due at infinity have no next due time, and an unreadable table reports none."""
    now, known = timezone.now(), {"overdue": 0, "next_due_at": None, **figures}
    kept("Sales.Delayed", **known)
    queue = Queue.objects.create(schema="public", table="Sales", kind="input")
    LatestSample.objects.create(queue=queue, at=now, changed_at=now, ready=0, depth=0, **known)
    assert f'<span class="faint">{in_row}</span>' in text(as_viewer)
    assert (said or "nothing delayed") in text(as_viewer, "/")
    assert (said or "nothing waits for a time") in text(as_viewer, "/queues/public/Sales/")


def test_an_open_page_is_told_what_changes(as_viewer: Client) -> None:
    stuck = kept("Sales.Delayed", overdue=2, next_due_at=timezone.now() - timedelta(hours=3))
    html, told = text(as_viewer), rows.live("")
    for key in told:
        assert key.startswith("@") or f'data-live="{key}"' in html or f'data-live-class="{key}"' in html, key
    assert told[f"d{stuck.queue_id}.tone"] == "warn"


def test_the_recorded_tables_and_their_counts(recorded: Recorded) -> None:
    sample()
    html = text(recorded.operator)
    for table in ("Sales.Delayed", "Shop.Web.Delayed", "Invoicing.Delayed", "Poison.Delayed"):
        assert f"/{table}/messages/" in html
    assert "as ours: UTC" in html


def follow(client: Client, address: str) -> list[str]:
    seen = []
    while address:
        html = client.get(address).content.decode()
        seen += IDS.findall(html)
        found = re.search(r'rel="next" href="([^"]+)"', html)
        address = MESSAGES + found[1].replace("&amp;", "&") if found else ""
    return seen


def test_all_pages_are_the_table_by_due_time(looked_at: Recorded) -> None:
    ordered = [str(row.id) for row in looked_at.connection.all('select id from "Sales.Delayed" order by due, id')]
    assert follow(looked_at.operator, MESSAGES) == ordered


def test_list_from_now_skips_overdue_messages(recorded: Recorded) -> None:
    recorded.connection.run("""update "Sales.Delayed" set due = now() + interval '1 h' where id in
        (select id from "Sales.Delayed" order by due, id limit 3)""")
    recorded.connection.run("""update "Sales.Delayed" set due = now() - interval '1 h' where due < now()""")
    later = recorded.connection.value("""select count(*) from "Sales.Delayed" where due > now()""")
    assert later >= 3
    assert len(follow(recorded.operator, f"{MESSAGES}?from=now")) == later


@pytest.mark.parametrize("cursor", ["x", "WzFd", "WyJpbmZpbml0eSIsIngiXQ", "WyJkcm9wIHRhYmxlIiwieCJd"])
def test_a_cursor_that_is_none_is_the_first_page(looked_at: Recorded, cursor: str) -> None:
    assert len(IDS.findall(text(looked_at.operator, f"{MESSAGES}?after={cursor}"))) == 50


def test_a_delayed_message_says_when_it_goes_and_where(looked_at: Recorded) -> None:
    row = looked_at.connection.one("""select id from "Shop.Web.Delayed" where headers like '%Legacy%' limit 1""")
    assert row is not None
    html = text(looked_at.operator, f"/queues/public/Shop.Web.Delayed/messages/{row.id}/")
    for said in ("When it is due", 'href="/queues/Legacy/Invoicing/"', "own queue", "Headers", "Body", "Stands as"):
        assert said in html
    assert looked_at.operator.get(f"/queues/public/Shop.Web.Delayed/messages/{row.id}/body/").status_code == 200


def test_a_time_that_never_comes_and_headers_that_cannot_be_read(looked_at: Recorded) -> None:
    html = text(looked_at.operator, "/queues/public/Poison.Delayed/messages/")
    assert "never" in html
    assert "Headers cannot be read" in html
    assert "NULL" in html
    for row_id in IDS.findall(html):
        text(looked_at.operator, f"/queues/public/Poison.Delayed/messages/{row_id}/")


def test_writers_in_another_zone_are_told_and_due_is_shown_as_meant(recorded: Recorded) -> None:
    """As written from New York: five hours too late in the table (wire sheet 3)."""
    recorded.connection.run("""update "Shop.Web.Delayed" set due = due + interval '5 h'""")
    html = text(recorded.operator, "/queues/public/Shop.Web.Delayed/messages/")
    assert "use a session time zone 5 h behind UTC" in html
    assert "too late" in html
    sample()
    listed = text(recorded.operator)
    assert "zone UTC−5 h" in listed
    was = recorded.connection.one("""select id, due - interval '5 h' as due from "Shop.Web.Delayed" order by due""")
    assert was is not None
    message = text(recorded.operator, f"/queues/public/Shop.Web.Delayed/messages/{was.id}/")
    assert f'datetime="{was.due:%Y-%m-%dT%H:%M:%S}' in message


def test_a_message_that_was_moved_meanwhile(looked_at: Recorded) -> None:
    html = text(looked_at.operator, f"{MESSAGES}00000000-0000-0000-0000-000000000000/", status=404)
    assert "Not in Sales.Delayed now" in html.replace("<wbr>", "")


def test_a_database_that_is_down_leaves_the_figures(as_viewer: Client) -> None:
    from tests.console.sampled import elsewhere

    kept("Sales.Delayed")
    with elsewhere("queues", PORT=1):
        html = text(as_viewer)
    assert "Sales" in html
    assert "time zone unknown" in html


def test_when_it_is_due_is_told_as_bars_and_in_figures(recorded: Recorded) -> None:
    recorded.connection.run("""delete from "Sales.Delayed" """)
    for due, number in (("- interval '1 h'", 3), ("+ interval '30 min'", 2), ("+ interval '30 d'", 1)):
        rows_of = f"select '{{}}', now() {due} from generate_series(1, {number})"
        recorded.connection.run(f'insert into "Sales.Delayed" (headers, due) {rows_of}')
    with_sales = delayed.spread(recorded.connection, Address("public", "Sales.Delayed"))
    assert with_sales == [3, 0, 0, 2, 0, 0, 0, 1]
    address = Address("public", "Sales.Delayed")
    a_zone_off = delayed.spread(recorded.connection, address, zone=timedelta(hours=1))
    assert a_zone_off == [5, 0, 0, 0, 0, 0, 0, 1], "as the rows beside it have it"
    sample()
    html = text(recorded.operator)
    assert "When it is due" in html
    assert 'aria-label="Messages by when they are due: overdue' in html
    assert "<style" not in html
    assert " style=" not in html


def test_the_largest_stretch_is_the_longest_bar() -> None:
    found = due_histogram.added_up([[1, 0, 0, 0, 0, 0, 0, 4], [1, 0, 0, 0, 0, 0, 0, 0]])
    assert [(each.messages, each.percent) for each in found.stretches if each.messages] == [(2, 50.0), (4, 100.0)]
    assert not found.is_cut
    assert due_histogram.added_up([]).total == 0


def test_its_messages_stand_under_delayed_in_the_rail(looked_at: Recorded) -> None:
    row = looked_at.connection.one("""select id from "Shop.Web.Delayed" limit 1""")
    assert row is not None
    for address in (MESSAGES, f"/queues/public/Shop.Web.Delayed/messages/{row.id}/"):
        html = text(looked_at.operator, address)
        assert re.findall(r'data-page="(\w+)"[^>]* aria-current="page"', html)[:1] == ["delayed"]
    html = text(looked_at.operator, "/queues/public/Sales/messages/")
    assert re.findall(r'data-page="(\w+)"[^>]* aria-current="page"', html)[:1] == ["queues"]
