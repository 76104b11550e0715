"""Schemas of single queues, and endpoints that only send (T1)."""

from datetime import timedelta

import pytest

from pgqueue_admin.transport import Endpoint, JsonSerializer, RawSerializer, Serializers, SettingsRefused
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"


def test_each_queue_may_lie_in_a_schema_of_its_own(make_endpoint, connection, handlers):
    connection.run('create schema "Ops"')
    connection.run('create schema "Legacy"')
    given = {"error": "Ops", "Sales": "Legacy"}
    sales = make_endpoint("Sales", schemas=given, settings=QUICK)
    query = "select schemaname, tablename from pg_tables where schemaname !~ '^(pg_|inf)' order by 1, 2"
    assert [tuple(row) for row in connection.all(query)] == [
        ("Legacy", "Sales"),
        ("Ops", "error"),
        ("public", "Sales.Delayed"),
        ("public", "SubscriptionRouting"),
    ]

    @handlers.handle(PLACE)
    def fail(message, context):
        raise ZeroDivisionError

    make_endpoint("Web", schemas=given).send("Sales", {}, type=PLACE, headers={h.REPLY_TO_ADDRESS: None})
    sales.start()
    (failed,) = until(lambda: rows(sales.dsn, "error", schema="Ops"), 20)
    assert h.parse(failed.headers)[h.FAILED_Q] == '"Legacy"."Sales"'


def test_what_an_instance_of_the_original_delayed_is_moved(make_endpoint, connection, handlers):
    """It looks a delayed table's schema up by that table's own name, so the queue's does not hold for it."""
    connection.run('create schema "Ops"')
    seen = []
    handlers.handle(PLACE)(lambda body, context: seen.append(body))
    sales = make_endpoint("Sales", schemas={"Sales": "Ops"})
    headers = h.dump({h.ENCLOSED_MESSAGE_TYPES: PLACE, h.FORWARD_DESTINATION: '"Ops"."Sales"'})
    theirs = """insert into public."Sales.Delayed" (headers, body, due) values (%s, '7', now())"""
    connection.run(theirs, [headers])
    sales.start()
    until(lambda: seen, 20)
    assert seen == [7]


@pytest.mark.parametrize(
    ("given", "delayed", "instance"),
    [
        ({"Web": "ops"}, '"public"."Web.Delayed"', '"public"."Web.n1"'),
        ({"Web.Delayed": "ops"}, '"ops"."Web.Delayed"', '"public"."Web.n1"'),
        ({"Web.n1": "ops"}, '"public"."Web.Delayed"', '"ops"."Web.n1"'),
    ],
)
def test_each_table_of_an_endpoint_goes_by_its_own_name(database, given, delayed, instance):
    """As others resolve it: an answer must not go to another schema than the one that is listened to."""
    web = Endpoint("Web", database, schemas=given, instance="n1")
    assert (str(web.delayed), str(web.instance_queue)) == (delayed, instance)
    assert web.addressing.resolve('"Web.n1"') == web.instance_queue.address


@pytest.fixture
def feed(database):
    endpoint = Endpoint("Partner.Feed", database, send_only=True)
    yield endpoint
    endpoint.stop()


def test_who_only_sends_makes_no_table_and_says_nothing_of_replies(feed, endpoint, connection, recording):
    feed.create_queues()
    tables = connection.value("select count(*) from pg_tables where tablename like 'Partner%'")
    feed.send("Sales", {}, type=PLACE)
    headers = h.parse(rows(feed.dsn, "Sales")[0].headers)
    recorded = [h.parse(row.headers) for row in rows(recording, "Sales") if "Partner.Gateway" in row.headers]
    assert (tables, headers[h.ORIGINATING_ENDPOINT]) == (0, "Partner.Feed")
    assert set(headers) == {name for name in recorded[0] if name.startswith(("NServiceBus.", "$."))}


def test_who_only_sends_may_not_receive_nor_delay(feed, endpoint):
    with pytest.raises(SettingsRefused, match="only sends"):
        feed.start()
    for act in (feed.purge, lambda: feed.subscribe("Shop.OrderPlaced")):
        with pytest.raises(SettingsRefused, match="has no queue"):
            act()
    with pytest.raises(ValueError, match="no delayed table"):
        feed.send("Sales", {}, type=PLACE, delay=timedelta(1))
    assert rows(feed.dsn, "Sales") == []


def test_the_name_of_who_only_sends_need_not_fit_a_table(database):
    """It has none; the original returns before its check where nothing receives."""
    assert Endpoint("P" * 200, database, send_only=True).name == "P" * 200
    with pytest.raises(SettingsRefused, match="needs a name"):
        Endpoint("", database, send_only=True)


def test_an_endpoint_writes_by_its_serializer_and_reads_by_the_messages(make_endpoint, handlers):
    """T5: the content type says which."""
    seen = []
    handlers.handle(PLACE)(lambda body, context: seen.append(body))
    endpoint = make_endpoint("Sales", serializers=Serializers(RawSerializer(), JsonSerializer()))
    endpoint.send("Sales", b"\0raw", type=PLACE)
    endpoint.send("Sales", b'{"n":1}', type=PLACE, headers={h.CONTENT_TYPE: "application/json"})
    types = [h.parse(row.headers)[h.CONTENT_TYPE] for row in rows(endpoint.dsn, "Sales")]
    assert types == ["application/octet-stream", "application/json"]
    endpoint.start()
    until(lambda: len(seen) == 2, 20)
    assert sorted(seen, key=str) == [b"\0raw", {"n": 1}]


def test_settings_that_name_too_long_a_queue_are_refused_at_the_start_and_live(make_endpoint):
    long = type(QUICK)(error_queue="e" * 56)
    with pytest.raises(SettingsRefused, match=r"error_queue .* 1 bytes too long"):
        make_endpoint("Sales", settings=long)
    endpoint = make_endpoint("Sales")
    with pytest.raises(SettingsRefused, match="error_queue"):
        endpoint.apply(long)
    assert endpoint.settings == QUICK
