"""Schemas of single queues, and send-only endpoints (T1)."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import Endpoint, JsonSerializer, RawSerializer, Serializers, SettingsRefused
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.addresses import Addressing, name_faults, queue_faults, table_name
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.waiting import until


# Table names and their limit (T1; wire sheet 1.4).
def test_tables_of_a_logical_address():
    assert table_name("Sales") == "Sales"
    assert table_name("Sales", "Delayed") == "Sales.Delayed"
    assert table_name("Sales", discriminator="eu-1") == "Sales.eu-1"


@pytest.mark.parametrize("name", ["S" * 47, "é" * 23])
def test_47_bytes_start(name):
    assert name_faults(postgresql(), name) == []


@pytest.mark.parametrize(("name", "excess"), [("S" * 48, 1), ("é" * 24, 1), ("S" * 60, 13)])
def test_48_bytes_do_not(name, excess):
    (fault,) = name_faults(postgresql(), name)
    assert f"{excess} bytes too long" in fault
    assert "55" in fault


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_that_are_none(name):
    assert len(name_faults(postgresql(), name)) == 1


def test_destinations_are_read_as_an_endpoint_reads_them():
    plain = Addressing(postgresql(), "public")
    assert plain.resolve("Billing") == Address("public", "Billing")
    assert plain.resolve('"Legacy"."Invoicing"') == Address("Legacy", "Invoicing")
    assert plain.resolve("My.Error.Queue") == Address("My", "Error.Queue")
    assert plain.resolve(Address("a", "b.c")) == Address("a", "b.c")
    with pytest.raises(AddressUnreadable):
        plain.resolve("")


def bare(part: str) -> str:
    return part[1:-1].replace('""', '"') if len(part) > 1 and part[0] == part[-1] == '"' else part


@given(st.text('".aB é', max_size=12))
def test_any_address_is_split_at_the_first_dot_outside_quotes(text):
    """Character by character, as in the original: a dot is outside if an even number of quotes precede it."""
    at = next((n for n, letter in enumerate(text) if letter == "." and text[:n].count('"') % 2 == 0), None)
    schema, table = ("public", bare(text)) if at is None else (bare(text[:at]), bare(text[at + 1 :]))
    plain = Addressing(postgresql(), "public")
    if schema and table:
        assert plain.resolve(text) == Address(schema, table)
    else:
        with pytest.raises(AddressUnreadable):
            plain.resolve(text)


def test_a_schema_given_for_a_queue_wins():
    """It overrides the address's schema and applies to the unquoted name, so that quoting changes nothing."""
    given = Addressing(postgresql(), "public", {"error": "ops", "My.Queue": "Mine"})
    assert given.resolve("error") == given.resolve('"error"') == given.resolve('"else"."error"') == ("ops", "error")
    assert given.resolve('"My.Queue"') == given.own("My.Queue") == ("Mine", "My.Queue")
    assert given.resolve("Errors") == given.own("Errors") == ("public", "Errors")
    assert given.resolve(Address("public", "error")) == ("public", "error")


def test_queues_of_the_settings_must_fit_and_be_read():
    plain = Addressing(postgresql(), "public")
    assert queue_faults(plain, "error_queue", "e" * 55) == []
    (fault,) = queue_faults(plain, "error_queue", '"ops"."' + "é" * 28 + '"')
    assert "error_queue" in fault
    assert "1 bytes too long" in fault
    (fault,) = queue_faults(plain, "error_queue", "ops.")
    assert "names no queue table" in fault


def test_an_instance_has_to_fit_as_well():
    assert name_faults(postgresql(), "Sales", "n" * 49) == []
    (fault,) = name_faults(postgresql(), "Sales", "n" * 50)
    assert "1 bytes too long" in fault


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


def test_message_delayed_by_an_original_instance_is_moved(make_endpoint, connection, handlers):
    """The original resolves a delayed table by that table's own name, so the queue's schema does not apply to it."""
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
    """Other endpoints resolve them so: a reply must reach the schema that the endpoint receives from."""
    web = Endpoint("Web", database, schemas=given, instance="n1")
    assert (str(web.delayed), str(web.instance_queue)) == (delayed, instance)
    assert web.addressing.resolve('"Web.n1"') == web.instance_queue.address


@pytest.fixture
def feed(database):
    endpoint = Endpoint("Partner.Feed", database, send_only=True)
    yield endpoint
    endpoint.stop()


def test_send_only_endpoint_creates_no_table_and_no_reply_address(feed, endpoint, connection, recording):
    feed.create_queues()
    tables = connection.value("select count(*) from pg_tables where tablename like 'Partner%'")
    feed.send("Sales", {}, type=PLACE)
    headers = h.parse(rows(feed.dsn, "Sales")[0].headers)
    recorded = [h.parse(row.headers) for row in rows(recording, "Sales") if "Partner.Gateway" in row.headers]
    assert (tables, headers[h.ORIGINATING_ENDPOINT]) == (0, "Partner.Feed")
    assert set(headers) == {name for name in recorded[0] if name.startswith(("NServiceBus.", "$."))}


def test_send_only_endpoint_may_not_receive_nor_delay(feed, endpoint):
    with pytest.raises(SettingsRefused, match="only sends"):
        feed.start()
    for act in (feed.purge, lambda: feed.subscribe("Shop.OrderPlaced")):
        with pytest.raises(SettingsRefused, match="has no queue"):
            act()
    with pytest.raises(ValueError, match="no delayed table"):
        feed.send("Sales", {}, type=PLACE, delay=timedelta(1))
    assert rows(feed.dsn, "Sales") == []


def test_the_name_of_who_only_sends_need_not_fit_a_table(database):
    """A send-only endpoint has no table; the original returns before its check if nothing receives."""
    assert Endpoint("P" * 200, database, send_only=True).name == "P" * 200
    with pytest.raises(SettingsRefused, match="needs a name"):
        Endpoint("", database, send_only=True)


def test_an_endpoint_writes_by_its_serializer_and_reads_by_the_messages(make_endpoint, handlers):
    """T5: the content type decides."""
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


def test_too_long_queue_name_is_refused_at_start_and_at_run_time(make_endpoint):
    long = type(QUICK)(error_queue="e" * 56)
    with pytest.raises(SettingsRefused, match=r"error_queue .* 1 bytes too long"):
        make_endpoint("Sales", settings=long)
    endpoint = make_endpoint("Sales")
    with pytest.raises(SettingsRefused, match="error_queue"):
        endpoint.apply(long)
    assert endpoint.settings == QUICK
