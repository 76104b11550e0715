"""How the monitor reads answers of SQL Server. Their columns are those of the approved statements.

No SQL Server is involved: rows are made as the statements define them, then processed for real.
"""

import json
import logging
import re
from collections import namedtuple
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlglot

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.sqlserver.dialect import SQLServer
from pgqueue_admin.monitor import delayed, depth, discovery, table_classifier
from pgqueue_admin.monitor.message import DelayedMessage, WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.transport.wire import header_spellings
from tests.dialects.sqlserver.test_statements import statement

BILLING: Any = SQLServer("shop").aliased("billing")
SALES, LATER = Address("billing:dbo", "Sales"), Address("billing:dbo", "Sales.Delayed")
NOW = datetime(2026, 11, 29, 1, tzinfo=UTC)
ID = UUID("6f9619ff-8b86-d011-b42d-00cf4fc964ff")
HEADERS = '{"NServiceBus.MessageId":"é"}'
QUEUE = {
    **{"Id": "uniqueidentifier", "CorrelationId": "varchar", "ReplyToAddress": "varchar", "Recoverable": "bit"},
    **{"Expires": "datetime", "Headers": "nvarchar", "Body": "varbinary", "RowVersion": "bigint"},
}
DELAYED = {"Headers": "nvarchar", "Body": "varbinary", "Due": "datetime", "RowVersion": "bigint"}
SUBSCRIPTION = {"QueueAddress": "nvarchar", "Endpoint": "nvarchar", "Topic": "nvarchar"}


def answered(noun: str, name: str, **said: Any) -> Any:
    """A row with a value for exactly the columns of this statement."""
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    text = re.sub(r"%\((\w+)\)s", r"@\1", statement(noun, name)).replace("%%", "%")
    last: Any = sqlglot.parse(text, read="tsql")[-1]
    assert sorted(last.named_selects) == sorted(said)
    query = getattr(getattr(BILLING, noun), "server_time" if noun == "monitor" else "due_and_headers")(
        table=SALES, most=1
    )
    row: Any = namedtuple("row", said)  # type: ignore[misc]
    return query.read(row(**said))


def catalog(columns: dict[str, str], table: str = "Sales", **said: Any) -> QueueTable | None:
    shape = [{"name": name, "type": kind, "is_user_defined": False} for name, kind in columns.items()]
    is_numbered = "RowVersion" in columns
    row = answered(
        "monitor",
        "tables",
        **{
            **{"schema": "dbo", "table": table, "oid": 4711, "columns_json": json.dumps(shape), "seq_indexed": True},
            **{"seq_unique": is_numbered, "has_primary_key": False, "sequence": table if is_numbered else None},
            **{"sequence_schema": "dbo" if is_numbered else None, "sequence_max": 2**63 - 1, "sequence_step": 1},
            **{"sequence_is_readable": is_numbered, "size_bytes": 8192, "hides_rows": False},
            **said,
        },
    )
    judged = table_classifier.judge(row)
    return QueueTable.from_catalog(BILLING, row, *judged) if judged else None


def found(columns: dict[str, str], table: str = "Sales", **said: Any) -> QueueTable:
    made = catalog(columns, table, **said)
    assert made
    return made


def without(*names: str) -> dict[str, str]:
    return {name: kind for name, kind in QUEUE.items() if name not in names}


@pytest.mark.parametrize(
    ("columns", "table", "kind"),
    [
        (QUEUE, "Sales", TableKind.INPUT),
        (without("Recoverable"), "Sales", TableKind.INPUT),
        ({**QUEUE, "Headers": "varchar"}, "Sales", TableKind.INPUT),
        ({**QUEUE, "BodyString": "nvarchar"}, "Sales", TableKind.INPUT),
        (QUEUE, "error", TableKind.ERROR),
        (QUEUE, "audit", TableKind.AUDIT),
        (QUEUE, "Particular.ServiceControl", TableKind.PLATFORM),
        (DELAYED, "Sales.Delayed", TableKind.DELAYED),
        (SUBSCRIPTION, "SubscriptionRouting", TableKind.SUBSCRIPTION),
        (without("Expires"), "Sales", TableKind.UNKNOWN),
    ],
)
def test_tables_are_judged_as_those_of_postgresql(columns: dict[str, str], table: str, kind: TableKind) -> None:
    made = found(columns, table)
    assert (made.kind, made.address) == (kind, Address("billing:dbo", table))


def test_reason_of_a_queue_names_its_extra_columns() -> None:
    assert found(QUEUE).reason == "has id, expires, headers, body and rowversion"
    mine = found({**QUEUE, "Tenant": "int"})
    assert mine.reason.endswith("and columns of its own: tenant")
    assert mine.has_messages
    assert mine.is_counted
    assert not mine.has_bodystring, "what it shows is computed by whoever made it"
    assert mine.seq_end == 2**63 - 1


def test_other_tables_are_no_business_of_ours() -> None:
    assert catalog({"Id": "int", "Headers": "nvarchar", "Body": "nvarchar"}) is not None, "nearly a queue"
    assert catalog({"Headers": "nvarchar", "Body": "varbinary", "RowVersion": "timestamp"}) is None


@pytest.mark.parametrize("name", ["Sales@here", "Sales\nhere", "$(Sales)"])
def test_a_name_that_no_address_can_hold_is_none(name: str) -> None:
    with pytest.raises(AddressUnreadable):
        catalog(QUEUE, name)


def test_delayed_tables_find_their_queues() -> None:
    pair = discovery.paired([found(QUEUE), found(DELAYED, "Sales.Delayed")])
    assert [each.delayed or each.delayed_of for each in pair] == [LATER, SALES]


def test_a_table_with_a_security_policy_is_not_looked_into() -> None:
    assert found(QUEUE, hides_rows=True).why_unread.startswith("A security policy hides rows of it")


def measured(table: QueueTable, **said: Any) -> Any:
    facts = {
        **{"at": NOW, "head": 11, "tail": 13, "hits": 0, "hits_expired": 0, "rows": 3, "more": False},
        **{"in_flight": None, "expired": 1, "ready_head": 12, "marks_json": '[{"value":11}]', "sent_total": 13},
        **{"seconds": 0.001, **said},
    }
    name = "depth" if table.seq_indexed else "depth_unindexed"
    return depth.read(table, answered("monitor", name, **facts))


def test_depth_is_counted_and_nothing_is_known_of_what_is_in_flight() -> None:
    seen = measured(found(QUEUE))
    assert (seen.depth, seen.ready, seen.expired, seen.in_flight, seen.how) == (3, 2, 1, None, "counted")
    assert (seen.head_seq, seen.tail_seq, seen.ready_seq, seen.span, seen.marks) == (11, 13, 12, 3, (11,))
    assert (seen.sent_total, seen.step) == (13, 1)


def test_an_empty_queue_has_no_ends() -> None:
    seen = measured(found(QUEUE), head=None, tail=None, rows=0, expired=0, ready_head=None, marks_json=None)
    assert (seen.depth, seen.span, seen.marks) == (0, 0, ())


def test_past_the_cap_it_is_estimated() -> None:
    ends = {"head": 1, "tail": 40_000, "rows": 1_000, "more": True, "hits": 96}
    assert (measured(found(QUEUE), **ends).depth, measured(found(QUEUE), **ends).how) == (20_000, "estimate")
    assert measured(found(QUEUE), **{**ends, "hits": 0}).how == "capped"


def test_without_an_index_it_is_counted_to_the_cap() -> None:
    assert measured(replace(found(QUEUE), seq_indexed=False), sent_total=None).ready == 2


def test_delayed_rows_are_counted() -> None:
    facts = {"at": NOW, "rows": 2, "overdue": 1, "next_due": NOW - timedelta(minutes=1), "estimate": None}
    seen = depth.read(found(DELAYED, "Sales.Delayed"), answered("monitor", "delayed", **facts))
    assert (seen.delayed, seen.overdue, seen.next_due_at) == (2, 1, NOW - timedelta(minutes=1))


def row_of_a_message(text: str | None = HEADERS, **said: Any) -> dict[str, Any]:
    data = None if text is None else text.encode("utf-16-le", "surrogatepass")
    return {"is_in_flight": False, "headers_text_utf16": data, "headers_beyond": None, "body_size": 2, **said}


def waiting(text: str | None = HEADERS, **said: Any) -> WaitingMessage:
    facts = {"id": ID, "seq": 7, "expires_text": None, "expires_at": None, "is_expired": False, **said}
    return WaitingMessage.from_row(answered("browse", "upwards", **row_of_a_message(text, **facts)))


def test_a_message_is_read() -> None:
    seen = waiting()
    assert (seen.id, seen.seq, seen.state, seen.message_id, seen.unreadable) == (ID, 7, "ready", "é", "")
    assert seen.headers_size == len(HEADERS.encode()), "as bytes of UTF-8, as everywhere"
    assert seen.body_size == 2


def test_headers_that_are_no_text_break_no_page() -> None:
    assert waiting('{"a":"\ud800"}').headers == {"a": "�"}
    assert waiting("not json").unreadable
    assert waiting(None).headers == {}


def test_headers_that_were_cut_are_said_to_be_too_large() -> None:
    assert "too large" in waiting("x" * 65_536, headers_beyond=200_000).unreadable
    assert "too large" in waiting("€" * 65_536, headers_beyond=131_074).unreadable


def test_a_delayed_message_goes_by_its_number() -> None:
    due: dict[str, Any] = {"id_number": 5, "due_text": "2026-11-29 01:00:00.003+00", "due_at": NOW}
    seen = DelayedMessage.from_row(answered("browse", "delayed_upwards", **row_of_a_message(**due)))
    assert (seen.id, seen.due_at) == (UUID(int=5), NOW)
    given = BILLING.browse.delayed_message(table=LATER, columns=BILLING.browse.delayed_columns).given({"id": seen.id})
    assert given == {"number": 5}
    assert BILLING.browse.numbered_body(table=LATER).given({"id": ID, "offset": 0, "length": 1})["number"] == -(2**63)
    starts = BILLING.browse.delayed_body_starts(table=LATER)
    assert starts.given({"ids": [UUID(int=5), UUID(int=7)], "most": 9}) == {"row_numbers": "[5, 7]", "most": 9}
    assert answered("browse", "delayed_body_starts", id_number=5, is_cut=False, part=b"{}").id == UUID(int=5)


def test_a_page_of_delayed_messages_goes_on_behind_a_due_time() -> None:
    query = BILLING.browse.delayed_upwards(table=LATER, columns=BILLING.browse.delayed_columns)
    first = query.given({"due": delayed.FIRST[0], "id": delayed.FIRST[1], "limit": 51})
    assert first == {"due": datetime(1753, 1, 1), "number": 0, "limit": 51}  # noqa: DTZ001
    onward = query.given({"due": "2026-11-29 01:00:00.003+00", "id": str(UUID(int=9)), "limit": 51})
    assert onward == {"due": datetime(2026, 11, 29, 1, 0, 0, 3_000), "number": 9, "limit": 51}  # noqa: DTZ001
    assert query.given({"due": "nonsense", "id": str(ID), "limit": 1})["due"] == "nonsense", "the server refuses it"


def test_values_are_as_the_server_takes_them() -> None:
    asked = BILLING.monitor.tables().given({"schemas": ["dbo", "it's"], "family": None})
    assert asked == {"schemas": '["dbo", "it\'s"]', "family": None}
    query, params = depth.asked(BILLING.monitor, found(QUEUE), now=NOW)
    assert query.given(params) == {
        "now": NOW.replace(tzinfo=None),
        "low": depth.BOTTOM,
        "sequence_name": "[dbo].[Sales]",
    }


def test_expired_seqs_of_a_range_are_parsed() -> None:
    row = answered("browse", "expired", seqs_json='[{"value":3},{"value":9}]', looked_at=20, looked_to=30)
    assert (row.seqs, row.looked_at, row.looked_to) == ([3, 9], 20, 30)


def test_a_table_of_another_database_is_in_no_statement() -> None:
    hostile = Address("billing:dbo", "x'] drop table y--")
    assert "[dbo].[x']] drop table y--]" in BILLING.browse.there(table=hostile)
    query, params = depth.asked(BILLING.monitor, replace(found(QUEUE), address=hostile, sequence=hostile))
    assert query.given(params)["sequence_name"] == "[dbo].[x']] drop table y--]", "as a value, in no quotes of ours"


def test_a_conversation_is_looked_for_by_each_spelling_of_its_id() -> None:
    query = BILLING.browse.in_conversation(table=SALES, has_conversation=BILLING.archive.has_conversation)
    given = query.given({**header_spellings.as_asked("NServiceBus.ConversationId", "é/1"), "newest": 2_000})
    assert json.loads(given["values"]) == header_spellings.spellings("é/1")
    assert given["name"] == '"NServiceBus.ConversationId"'
    row = answered("browse", "in_conversation", keys_json='[{"value":9},{"value":3}]', looked_at=20)
    assert (row.keys, row.looked_at) == ([9, 3], 20)
    of_delayed = BILLING.browse.delayed_listed(table=LATER, columns=BILLING.browse.delayed_columns)
    assert of_delayed.given({"ids": row.keys}) == {"ids": "[9, 3]"}


def test_a_schema_is_named_without_a_table() -> None:
    assert BILLING.address("dbo", "").schema == "billing:dbo"


def test_headers_near_the_head_are_read() -> None:
    data = HEADERS.encode("utf-16-le")
    assert answered("browse", "times_to_be_received", headers_utf16=data).headers == HEADERS
    assert answered("browse", "headers_at", headers_utf16=data).headers == HEADERS
    assert answered("monitor", "evidence", rows=5, failed=5, audited=0).failed == 5
    assert answered("monitor", "sizes", oid=1, size_bytes=None).size_bytes is None
