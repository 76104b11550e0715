"""Checks of columns and indexes: each fault names the statement that repairs it, and that statement does."""

import logging
from dataclasses import replace

import pytest

from pgqueue_admin.transport import Endpoint, checks
from pgqueue_admin.transport.errors import QueueUnfit
from tests.transport.conftest import QUICK

BREAKS = {
    'drop table "Sales"': "does not exist",
    'alter table "Sales" drop column expires': "no column expires",
    'alter table "Sales" drop column seq': "no column seq",
    'alter table "Sales" drop column id': "no column id",
    'alter table "Sales" drop column headers': "no column headers",
    'alter table "Sales" drop column body': "no column body",
    'alter table "Sales" drop constraint "Sales_pkey"': "no unique index on id",
    'alter table "Sales" drop constraint "Sales_seq_key"': "no index on seq",
    'alter table "Sales" alter seq drop default': "gives no seq",
    'alter table "Sales" alter expires type timestamptz': "expires as timestamp with time zone",
    'alter table "Sales" alter headers type jsonb using headers::jsonb': "headers as jsonb",
    'alter table "Sales" alter headers type varchar(4000)': "headers as character varying(4000)",
    'alter table "Sales" alter body type text using body::text': "body as text",
    'alter table "Sales" alter id type text': "id as text",
    'alter table "Sales" alter seq drop default, alter seq type text': "seq as text",
    'drop table "Sales.Delayed"': 'table "public"."Sales.Delayed" does not exist',
    'alter table "Sales.Delayed" drop column due': "no column due",
    'alter table "Sales.Delayed" alter due type timestamp': "due as timestamp without",
    'alter table "Sales.Delayed" alter id drop default': "gives no id",
    'alter table "Sales.Delayed" drop constraint "Sales.Delayed_pkey"': "no unique index on id",
    'drop index "Sales.Delayed_Due"': "no index on due",
    'drop table "SubscriptionRouting"': "does not exist",
    'alter table "SubscriptionRouting" drop constraint "SubscriptionRouting_pkey"': "no key of endpoint and topic",
    "drop table error": 'table "public"."error" does not exist',
}


@pytest.mark.parametrize("broken", BREAKS)
def test_every_fault_and_its_cure(endpoint, connection, broken):
    endpoint.send("Sales", {}, type="Shop.PlaceOrder")
    connection.run(broken)
    found = checks.faults(endpoint, connection)
    assert any(BREAKS[broken] in fault.said for fault in found), found
    for fault in found:
        connection.run(fault.cure)
    assert checks.faults(endpoint, connection) == []
    endpoint.send("Sales", {}, type="Shop.PlaceOrder")


def test_a_partial_or_broken_index_is_none(endpoint, connection):
    connection.run('alter table "Sales" drop constraint "Sales_seq_key"')
    connection.run('create index partial on "Sales" (seq) where seq > 5')
    connection.run('create index broken on "Sales" (seq)')
    connection.run("update pg_index set indisvalid = false where indexrelid = 'broken'::regclass")
    assert ["no index on seq" in fault.said for fault in checks.faults(endpoint, connection)] == [True]


def test_a_table_that_is_none_is_told_whole_and_refused(connection, database):
    connection.run('create table "Old" (id uuid, headers text, body bytea, seq integer)')
    endpoint = Endpoint("Old", database, settings=QUICK)
    with pytest.raises(QueueUnfit) as refused:
        endpoint.start()
    for said in ("no column expires", "no unique index on id", "no index on seq"):
        assert said in str(refused.value)
    assert 'HINT: alter table "public"."Old" add unique (seq)' in str(refused.value)


def test_fault_that_does_not_stop_is_logged_at_the_start(endpoint, connection, caplog):
    connection.run('drop index "Sales.Delayed_Due"')
    with caplog.at_level(logging.WARNING, "pgqueue_admin.transport"):
        endpoint.start()
    (said,) = [record.getMessage() for record in caplog.records if "HINT" in record.getMessage()]
    assert said == (
        '"public"."Sales.Delayed" has no index on due: each look reads all of it.\n'
        '\tHINT: create index if not exists "Sales.Delayed_Due" on "public"."Sales.Delayed" (due)'
    )


def test_the_recorded_tables_are_without_fault(recording, connect):
    recorded = connect(recording)
    for name, schema in (("Sales", "public"), ("Shop.Web", "public"), ("Invoicing", "Legacy")):
        shared = replace(QUICK, subscription_table='"public"."SubscriptionRouting"')
        endpoint = Endpoint(name, recording, schema=schema, schemas={"error": "public"}, settings=shared)
        assert checks.faults(endpoint, recorded) == []


def test_send_only_endpoint_has_no_tables_and_no_faults(connection, database):
    sender = Endpoint(
        "Feed", database, send_only=True, settings=replace(QUICK, create_message_body_computed_column=True)
    )
    sender.create_queues()
    assert checks.faults(sender, connection) == []
    assert connection.all("select 1 from pg_tables where schemaname = 'public'") == []
