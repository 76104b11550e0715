"""The console's queries of a database that it reads: each kind of database answers with the same columns."""

import logging
import re
from typing import Any

import pytest
import sqlglot

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.sqlserver.looking_query import FORMS
from tests.dialects.sqlserver.statements import LOOKING, composed, looking

# Queries that SQL Server does not have, with the reason.
NOT_ASKED = {
    "monitor": {"unwatched": "of the first database alone", "within": "limits_statements is no"},
    "browse": {
        "bodystring": "has_bodystring is no: whoever made the table decides what it computes",
        "listeners": "supports_notify is no",
        "hidden_sessions": "as listeners",
    },
}
_OF_LEASES = ("lease", "original")  # leases is None
OWN = {"monitor": {"numbers"}, "browse": {"body_at", "numbered_body"}}
ONE_VALUE = {"server_time", "there"}  # whatever the column's name is
UNREAD = {"is_prepared"}  # rows without a pid are prepared
PARTS = {"columns", "delayed_columns", "sent", "not_told", "heap_bytes", "numbers"}


def names(dialect: Any, noun: str) -> set[str]:
    return {each.name for each in getattr(dialect, noun) if not each.name.startswith(_OF_LEASES)}


@pytest.mark.parametrize("noun", LOOKING)
def test_each_question_has_an_answer(noun: str) -> None:
    here, there = names(postgresql(), noun), names(looking(), noun)
    assert here - there == NOT_ASKED[noun].keys()
    assert there - here == OWN[noun]


SHARED = [
    (noun, name)
    for noun in LOOKING
    for name in sorted(names(looking(), noun) - OWN[noun] - PARTS - ONE_VALUE - {"patience"})
]


@pytest.mark.parametrize(("noun", "name"), SHARED)
def test_sql_server_inspection_has_the_columns_of_postgresqls(noun: str, name: str) -> None:
    text = next(text for each, _, text in composed(noun) if each == name)
    there = [_as_read(column) for column in columns(text, "tsql")]
    assert set(there) == set(columns(_of_postgresql(noun, name), "postgres")) - UNREAD


def _as_read(column: str) -> str:
    """The column's name as ``LookingQuery.read`` makes it from its suffix."""
    name, _, form = column.rpartition("_")
    return "headers_size" if column == "headers_beyond" else name if form in FORMS else column


def _of_postgresql(noun: str, name: str) -> str:
    dialect, table = postgresql(), Address("public", "Sales")
    is_delayed = name.startswith("delayed")
    filled: dict[str, Any] = {
        **{"table": table, "columns": dialect.browse.delayed_columns if is_delayed else dialect.browse.columns},
        **{"sent": dialect.monitor.not_told, "bytes": dialect.monitor.heap_bytes, "cap": 10, "probes": 192, "step": 50},
        **{"few": 5, "window": 10, "pages": 2, "steps": 96, "reach": 20, "most": 20},
        "has_conversation": dialect.archive.has_conversation,
    }
    statement = getattr(getattr(dialect, noun), name)
    used = {key: value for key, value in filled.items() if f"{{{key}}}" in statement.text or key == "table"}
    return str(statement(**used).as_string(None))


def columns(text: str, kind: str) -> list[str]:
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    named = re.sub(r"%\((\w+)\)s", r"@\1" if kind == "tsql" else "null", text).replace("%%", "%")
    last: Any = sqlglot.parse(named, read=kind)[-1]
    return list(last.named_selects)
