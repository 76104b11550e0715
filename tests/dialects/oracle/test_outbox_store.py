"""Statements of Oracle's outbox, in order and with their values. No server is involved: only the text is tested."""

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.oracle.dialect import Oracle
from pgqueue_admin.dialects.oracle.outbox_store import OracleOutbox
from pgqueue_admin.outbox import Outbox, endpoint_outbox
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.receiving.receive_with_outbox import ReceiveWithOutbox
from pgqueue_admin.transport.sessions.reconnecting_session import ReconnectingSession
from pgqueue_admin.transport.wire.message import OutgoingMessage
from tests.dialects.oracle.recording_session import RecordingSession

DAY = timedelta(days=1)
ORIGINALS = [
    {"name": "MESSAGEID", "type": "NVARCHAR2(200)", "is_unique": 1},
    {"name": "DISPATCHED", "type": "NUMBER(1,0)", "is_unique": 0},
    {"name": "DISPATCHEDAT", "type": "TIMESTAMP(6)", "is_unique": 0},
    {"name": "PERSISTENCEVERSION", "type": "VARCHAR2(23)", "is_unique": 0},
    {"name": "OPERATIONS", "type": "CLOB", "is_unique": 0},
]
OURS = [*ORIGINALS, {"name": "CREATEDAT", "type": "TIMESTAMP(6)", "is_unique": 0}]
INDEXES = [{"name": "MESSAGEID"}, {"name": "DISPATCHED"}]
MARKING = ["begin", "mark", "dispatched", "commit"]


def store(table: str = "SALES_OD", schema: str = "") -> OracleOutbox:
    return Oracle().outbox_store(Address(schema, table))


class Received:
    """A message received by the engine with an outbox on Oracle, up to the calls of the driver."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, concurrency: Any, found: list[dict[str, Any]]):
        monkeypatch.setattr(endpoint_outbox, "dialect_for", lambda dsn: Oracle())
        self.session = RecordingSession(find=found)
        sessions: Any = ReconnectingSession(lambda: self.session)  # type: ignore[arg-type, return-value]
        slot: Any = SimpleNamespace(
            storage_of=lambda outbox: sessions,
            send=ReconnectingSession(lambda: RecordingSession()),  # type: ignore[arg-type, return-value]
        )
        sender: Any = SimpleNamespace(
            dispatch=lambda session, outgoing: self.session.happened.append("dispatched"),
            committed=lambda outgoing: None,
        )
        settings = Outbox(dsn="oracle://db", concurrency=concurrency)
        outbox = EndpointOutbox(settings, Endpoint("Sales", "postgresql://queues/shop"), sender)
        self.receive = ReceiveWithOutbox(slot, sender, slot, outbox)

    def happened(self) -> list[str]:
        message: Any = SimpleNamespace(message_id="one")
        if not self.receive.was_handled(message):
            self.session.happened.append("handled")
            self.receive.handled([OutgoingMessage(Address("public", "Billing"), {"a": "ä"}, b"x")], [])
        return self.session.happened


def test_optimistic_the_record_is_stored_after_the_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outbox sheet 5. The mark runs before the dispatch and is committed after it: it fails if another process sent."""
    happened = Received(monkeypatch, "optimistic", []).happened()
    assert happened == ["begin", "find", "handled", "store", "commit", *MARKING]


def test_pessimistic_it_is_stored_before_and_completed_after(monkeypatch: pytest.MonkeyPatch) -> None:
    received = Received(monkeypatch, "pessimistic", [])
    assert received.happened() == ["begin", "find", "store", "handled", "complete", "commit", *MARKING]
    assert received.session.asked["store"][1]["operations"] == "[]"
    assert '"\\u00e4"' in received.session.asked["complete"][1]["operations"]


@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
@pytest.mark.parametrize(("dispatched", "then"), [(1, []), (0, MARKING)])
def test_a_duplicate_is_not_handled_and_how_long_it_is_kept_does_not_slide(
    monkeypatch: pytest.MonkeyPatch, concurrency: str, dispatched: int, then: list[str]
) -> None:
    operations = '[{"MessageId": "two", "Headers": {}, "Body": "", "Options": {"Destination": "Billing"}}]'
    found = [{"id": "one", "dispatched": dispatched, "operations": operations}]
    happened = Received(monkeypatch, concurrency, found).happened()
    assert happened == ["begin", "find", "rollback", *then]


@pytest.mark.parametrize(
    ("id", "sent"), [("a:b%s'", "a:b%s'"), ("ä", "\\00e4"), ("漢😀", "\\6f22\\d83d\\de00"), ("\\", "\\005c")]
)
def test_an_id_is_sent_in_ascii(id: str, sent: str) -> None:
    """Every character set has ASCII: otherwise two ids could become one, and a message would be lost."""
    session = RecordingSession()
    for command in (
        store().finding(id),
        store().storing(id, "[]", DAY),
        store().completing(id, "[]"),
        store().marking(id),
    ):
        session.run(*command)
        assert isinstance(command[1], dict)
        assert command[1]["id"] == sent
    store().pending(session, DAY, 10, [id])  # type: ignore[arg-type]
    assert json.loads(session.asked["pending"][1]["without"]) == [sent]


@pytest.mark.parametrize("text", ['[{"ü \\" \\\\ %": "漢😀"}]', "[]"])
def test_operations_are_sent_in_ascii_and_mean_the_same(text: str) -> None:
    _, params = store().storing("one", text, DAY)
    assert isinstance(params, dict)
    assert params["operations"].isascii()
    assert json.loads(params["operations"]) == json.loads(text)


def test_the_wait_goes_to_the_driver() -> None:
    query, _ = store().storing("one", "[]", timedelta(seconds=10))
    assert query.wait == timedelta(seconds=10)


@pytest.mark.parametrize(("columns", "says_when"), [(ORIGINALS, False), (OURS, True)])
def test_work_is_a_look_and_a_lock(columns: list[dict[str, Any]], says_when: bool) -> None:
    session: Any = RecordingSession(columns=columns, work=[{"leads": 1, "purge": 0, "relay": 1}])
    outbox = store(schema="SHOP")
    assert outbox.work(session, 7 * DAY, timedelta(microseconds=1)) == (True, False, True)
    query, params = session.asked["work"]
    assert params == {"owner": "SHOP", "name": "SALES_OD", "keep": 7 * 86_400 * 10**6, "grace": 1}
    assert outbox.says_when is says_when
    assert ("CreatedAt" in query) is says_when


def test_how_many_were_purged_is_the_blocks_answer() -> None:
    session: Any = RecordingSession(purge=[{"deleted": 3}])
    assert store().purge(session, 7 * DAY, 4000) == 3
    assert "limit 4000;" in session.asked["purge"][0]


def test_pending_rows_come_as_records() -> None:
    row = {"id": "one", "dispatched": 0, "operations": "[]"}
    session: Any = RecordingSession(columns=OURS, pending=[row])
    assert store().pending(session, DAY, 100, []) == [("one", False, "[]")]
    assert session.asked["pending"][1]["without"] == "[]"


def test_missing_table_and_index_are_created() -> None:
    session: Any = RecordingSession()
    store(schema="SHOP").create(session)
    assert session.happened == ["columns", "indexes", "create", "create_index"]
    assert 'constraint "SALES_OD_PK" primary key' in session.asked["create"][0]
    assert session.asked["create_index"][0].startswith('create index "SHOP"."SALES_OD_IX" on "SHOP"."SALES_OD"')
    session = RecordingSession(columns=ORIGINALS, indexes=INDEXES)
    store().create(session)
    assert session.happened == ["columns", "indexes"]


def test_an_originals_table_has_no_fault() -> None:
    session: Any = RecordingSession(columns=ORIGINALS, indexes=INDEXES)
    assert list(store().faults(session)) == []


def test_faults_name_what_is_missing_and_the_cure() -> None:
    session: Any = RecordingSession()
    (fault,) = store().faults(session)
    assert (fault.stops, fault.cure.partition(" (")[0]) == (True, 'create table "SALES_OD"')
    wrong = [{**ORIGINALS[0], "is_unique": 0}, {**ORIGINALS[1], "type": "NUMBER(10,0)"}, *ORIGINALS[2:]]
    session = RecordingSession(columns=wrong, may_not_lead=[{"name": "SHOP"}])
    faults = list(store().faults(session))
    assert [fault.stops for fault in faults] == [True, True, False, False]
    assert faults[0].said == '"SALES_OD" has no column Dispatched as number(1,0).'
    assert faults[1].cure == 'alter table "SALES_OD" add primary key (MessageId)'
    assert faults[2].cure == 'create index "SALES_OD_IX" on "SALES_OD" (Dispatched, DispatchedAt)'


def test_role_without_the_lock_grant_is_told_of_it() -> None:
    session: Any = RecordingSession(columns=ORIGINALS, indexes=INDEXES, may_not_lead=[{"name": "SHOP"}])
    (fault,) = store().faults(session)
    assert fault.said.startswith("SHOP may not execute dbms_lock")
    assert (fault.cure, fault.stops) == ('grant execute on sys.dbms_lock to "SHOP"', False)


@pytest.mark.parametrize(("endpoint", "table"), [("Shop.Web", "SHOP_WEB_OD"), ("a:b%s", "A:B%S_OD")])
def test_the_table_is_named_as_the_original_does(endpoint: str, table: str) -> None:
    outbox = Oracle().outbox_store(Oracle().outbox_address(endpoint, ""))
    assert outbox.address == ("", table)
    query, params = outbox.finding("one")
    assert f'from "{table}"\n' in query
    RecordingSession().run(query, params)


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("A" * 25, "26 characters, and 25 are allowed"),
        ("Größe", "is not ASCII"),
        ('a"b', 'holds "'),
        ("a]b", "holds ]"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused(endpoint: str, said: str) -> None:
    """The script for a DBA refuses it too."""
    with pytest.raises(AddressUnreadable, match=said):
        Oracle().outbox_store(Oracle().outbox_address(endpoint, ""))


@pytest.mark.parametrize("schema", ["s" * 129, 's"t', "s\0"])
def test_a_schema_that_cannot_be_one_is_refused(schema: str) -> None:
    with pytest.raises(AddressUnreadable):
        store(schema=schema)
