"""Queue: what is in it, and why does it not move? (C2, C3)"""

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.utils import timezone

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Endpoint, Queue, Sample
from tests.console.pages import Connect, Page, matched
from tests.console.sampled import sample, signed_in


@pytest.fixture
def page(recorded_console: str) -> Page:
    sample(2)
    client = signed_in()
    return lambda path: client.get(path).content.decode()


def test_the_first_view_comes_from_the_newest_sample(page: Page) -> None:
    said = page("/queues/public/Billing/")
    assert 'data-live="now.ready"><span class="fig" data-kind="counted">40</span>' in said
    assert "&quot;public&quot;.&quot;Billing&quot;" in said
    assert 'hx-get="/queues/public/Billing/ends/"' in said  # the page queries the queue itself later


def test_the_number_that_a_usage_counter_reads_is_shown(page: Page, connect: Connect, recorded_console: str) -> None:
    """All numbers that the sequence issued, even for rolled-back sends: ServicePulse sums the differences."""
    connection = connect(recorded_console)
    last = connection.value("select nextval(pg_get_serial_sequence('\"Billing\"', 'seq'))")
    sample()
    text = " ".join(re.sub("<[^>]+>", " ", page("/queues/public/Billing/")).replace("\u00a0", " ").split())
    assert f"Sent in all, by its sequence {last:,} No setting: what ServicePulse" in text


def test_head_and_tail_are_the_first_and_last_rows(page: Page, connect: Connect, recorded_console: str) -> None:
    said = page("/queues/public/Billing/ends/")
    seqs = [int(seq.replace(",", "")) for seq in re.findall(r'<span class="mono">([\d,]+)</span></td>', said)]
    rows = [row.seq for row in connect(recorded_console).all('select seq from "Billing" order by seq')]
    assert seqs == [*rows[:4], *rows[-2:]]
    assert "34 messages between" in said


def test_without_scripts_head_and_tail_are_a_link_away(page: Page) -> None:
    assert "34 messages between" in page("/queues/public/Billing/?ends=1")


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (
            "insert into \"Few\" (id, headers) select gen_random_uuid(), '{}' from generate_series(1, 3)",
            "No number is missing",
        ),
        (
            "insert into \"Few\" (id, headers) select gen_random_uuid(), '{}' from generate_series(1, 5)",
            "7 numbers hold 6+ messages",
        ),
        ('update "Few" set seq = seq + 1 where seq = 2', "1 number between head and tail holds no message"),
    ],
)
def test_head_and_tail_override_an_older_sample(recorded_console: str, connect: Connect, later: str, said: str) -> None:
    """If head and tail meet, they are the whole queue; otherwise it holds at least the rows listed."""
    connection = connect(recorded_console)
    connection.run(postgresql().queue.create(table=Address("public", "Few")))
    connection.run("insert into \"Few\" (id, headers) select gen_random_uuid(), '{}' from generate_series(1, 2)")
    sample()
    connection.run(later)
    text = " ".join(re.sub("<[^>]+>", " ", signed_in().get("/queues/public/Few/ends/").content.decode()).split())
    assert said in text


def test_numbers_never_hold_more_messages_than_there_are_numbers(recorded_console: str, connect: Connect) -> None:
    connection = connect(recorded_console)
    connection.run(postgresql().queue.create(table=Address("public", "Many")))
    connection.run("insert into \"Many\" (id, headers) select gen_random_uuid(), '{}' from generate_series(1, 20)")
    sample()
    connection.run('delete from "Many" where seq <= 10')
    html = signed_in().get("/queues/public/Many/ends/").content.decode().replace("\u00a0", " ")
    text = " ".join(re.sub("<[^>]+>", " ", html).split())
    assert "10 numbers hold ≈ 10 messages" in text
    assert "≈ 4 messages between" in text
    assert "No number is missing" not in text


def test_message_sent_in_the_future_has_no_age(recorded_console: str, connect: Connect) -> None:
    connection = connect(recorded_console)
    connection.run(postgresql().queue.create(table=Address("public", "Ahead")))
    sent = f"{timezone.now() + timedelta(hours=3, minutes=11, seconds=30):%Y-%m-%d %H:%M:%S:%f} Z"
    headers = json.dumps({"NServiceBus.TimeSent": sent})
    insert = 'insert into "Ahead" (id, headers) values (gen_random_uuid(), %(headers)s)'
    connection.run(insert, {"headers": headers})
    sample()
    client = signed_in()
    for page in ("ends", "messages"):
        html = client.get(f"/queues/public/Ahead/{page}/").content.decode().replace("\u00a0", " ")
        assert "its sender’s clock is 3 h 11 min ahead" in html
        assert "in 3 h" not in html


def test_pages_say_what_a_span_is(page: Page) -> None:
    """T10: a single message has a difference of zero, and is still one waiting message."""
    assert "The span is tail − head + 1" in page("/queues/public/Billing/ends/")
    assert "Seq span is tail − head + 1" in page("/queues/")


def test_two_rows_far_apart_are_two_messages_and_the_span_is_explained(recorded_console: str, connect: Connect) -> None:
    connection, address = connect(recorded_console), Address("public", "Far")
    connection.run(postgresql().queue.create(table=address))
    connection.run(
        "insert into \"Far\" (id, headers, seq) values (gen_random_uuid(), '{}', 1), (gen_random_uuid(), '{}', 10000)"
    )
    sample()
    client = signed_in()
    assert (
        'data-live="now.ready"><span class="fig" data-kind="counted">2</span>'
        in client.get("/queues/public/Far/").content.decode()
    )
    said = client.get("/queues/public/Far/ends/").content.decode()
    assert "9,998 numbers between head and tail hold no message" in said
    assert "reports 10,000" in said


def test_samples_are_drawn_in_steps_whatever_the_persons_zone(page: Page) -> None:
    queue, now = Queue.objects.get(table="Billing"), timezone.now()
    Sample.objects.filter(queue=queue).delete()
    Sample.objects.create(queue=queue, at=now - timedelta(minutes=30), ready=123, how="counted")
    for zone in ("", "?"):
        said = page(f"/queues/public/Billing/{zone}")
        drawn = json.loads(unescape(matched(r'data-series="([^"]*)"', said)))
        place = drawn["ready"].index(123)
        assert abs(drawn["at"][place] - (now - timedelta(minutes=30)).timestamp()) <= drawn["step"]
        assert drawn["ready"].count(None) == len(drawn["ready"]) - 1  # a gap stays a gap


def test_the_shape_is_said_in_words_and_as_a_table(page: Page) -> None:
    queue, now = Queue.objects.get(table="Billing"), timezone.now()
    Sample.objects.bulk_create(
        Sample(queue=queue, at=now - timedelta(minutes=age), ready=10 * age, how="counted") for age in (10, 20, 30)
    )
    said = page("/queues/public/Billing/")
    assert "at most 300 at" in said
    assert "As table" in said
    assert 'data-history="/trends/?' in said, "where a stretch that is chosen on it is shown"


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("Shop.Web", "No message waits."),
        ("Sales.Delayed", "A delayed table has no seq"),
        ("SubscriptionRouting", "Has queueaddress, endpoint and topic"),
        ("Poison.MalformedHeaders", "Headers cannot be read"),
        ("Poison.NullBody", "NULL"),
        ("Poison.WideSeq", "5,000,000,000"),
    ],
)
def test_odd_tables_are_shown_as_what_they_are(page: Page, table: str, text: str) -> None:
    assert text in page(f"/queues/public/{table}/ends/")


def test_a_queue_whose_name_has_everything(page: Page, connect: Connect, recorded_console: str) -> None:
    address = Address("public", '<b>"a".b/c~ é')
    connect(recorded_console).run(postgresql().queue.create(table=address))
    sample()
    from pgqueue_admin.console import url_converters

    said = page(url_converters.queue(address))
    assert "&lt;b&gt;" in said
    assert "<b>&quot;a" not in said


def test_a_table_that_vanished_between_discovery_and_reading(
    page: Page, connect: Connect, recorded_console: str
) -> None:
    connect(recorded_console).run('drop table "Mailer"')
    assert "No messages to show here" in page("/queues/public/Mailer/ends/")
    assert "Mailer" in page("/queues/public/Mailer/")


def test_gone_is_the_fifth_kind_of_empty(page: Page) -> None:
    Queue.objects.filter(table="Mailer").update(gone_since=timezone.now())
    assert "This table is gone" in page("/queues/public/Mailer/")


def test_an_unknown_queue_is_a_plain_404(recorded_console: str) -> None:
    assert signed_in().get("/queues/public/Nowhere/").status_code == 404


def test_settings_of_an_endpoint_of_ours(page: Page) -> None:
    Endpoint.objects.create(name="Billing", schema="public", table="Billing", peek_delay_ms=1000)
    said = page("/queues/public/Billing/")
    assert "Peek delay" in said
    assert "100 ms to 10 s" in said
    assert (
        "needs the right “Can change peek settings and targets”, which an administrator gives in Django admin" in said
    )  # a viewer sees the act, and why it is not theirs


def test_peek_settings_are_edited_in_place_and_undone_with_one_click(recorded_console: str) -> None:
    sample()
    Endpoint.objects.create(name="Billing", schema="public", table="Billing", peek_delay_ms=1000)
    client = signed_in(superuser=True)
    form = client.get("/queues/public/Billing/?edit=1").content.decode()
    assert 'action="/endpoints/Billing/settings/"' in form
    fields = dict(
        re.findall(r'name="(\w+)" value="([^"]*)"', form[form.index('action="/endpoints/Billing/settings/"') :])
    )
    chosen = dict(re.findall(r'<select name="(\w+)".*?<option value="(\w+)" selected', form, re.DOTALL))
    risky = {**fields, **chosen, "peek_delay_ms": "12 s", "next": "/queues/public/Billing/#settings"}
    asked = client.post("/endpoints/Billing/settings/", risky)
    assert asked.status_code == 422  # the risk is explained first, and nothing has changed
    assert Endpoint.objects.get().peek_delay_ms == 1000
    saved = client.post("/endpoints/Billing/settings/", {**risky, "seen": "12000"})
    assert (saved.status_code, saved["Location"]) == (303, "/queues/public/Billing/#settings")
    assert Endpoint.objects.get().peek_delay_ms == 12_000
    entry = AuditEntry.objects.get()
    undone = client.post(f"/endpoints/Billing/undo/{entry.pk}/", {"next": "/queues/public/Billing/"})
    assert undone.status_code == 303
    assert Endpoint.objects.get().peek_delay_ms == 1000
