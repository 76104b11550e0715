"""Lists are sent whole, exactly as the driver's own dumper writes them."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from psycopg.types.array import ListDumper

from pgqueue_admin.dialects import Connection, errors

TEXTS = ['a "b" \\ c', "", "NULL", "{x,y}", "  two\twords\n", "Zoë 😀", "'"]
LISTS: dict[str, list[list[Any]]] = {
    "text": [TEXTS, TEXTS[:1], [*TEXTS, None], ["\x1f", "x\x1fy"], [None, None], []],
    "bigint": [[1, 2], [-5, 3], [7, 2**40], [1, None]],
    "boolean": [[True, False]],
    "uuid": [[uuid4(), uuid4()], [uuid4(), None]],
}


@pytest.mark.parametrize(("kind", "sent"), [(kind, sent) for kind, lists in LISTS.items() for sent in lists])
def test_a_list_arrives_as_it_was(connection: Connection, kind: str, sent: list[Any]) -> None:
    assert connection.value(f"select %(sent)s::{kind}[]", {"sent": sent}) == sent


def test_a_text_that_no_column_holds_is_refused(connection: Connection) -> None:
    with pytest.raises(errors.DatabaseError, match="NUL"):
        connection.value("select %(sent)s::text[]", {"sent": ["a\0b", "c"]})


@pytest.mark.parametrize("encoded", ["LATIN1", "UTF8"], indirect=True)
def test_list_items_are_encoded_like_single_texts(encoded: str, connect: Callable[..., Connection]) -> None:
    session, said = connect(encoded), 'Zoë owes "12 €" \\'
    one = session.value("select %(said)s::text", {"said": said})
    assert session.value("select %(sent)s::text[]", {"sent": [said, "x"]}) == [one, "x"]


@pytest.mark.parametrize(
    "sent", [TEXTS, [1, 2], [None, None], [uuid4(), uuid4()]], ids=["texts", "numbers", "none", "ids"]
)
def test_no_item_of_many_is_written_by_itself(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, sent: list[Any]
) -> None:
    def item_by_item(*args: Any) -> None:
        raise AssertionError("thousands of items would be written one by one")

    monkeypatch.setattr(ListDumper, "_dump_list", item_by_item)
    assert connection.value("select pg_catalog.cardinality(%(sent)s::text[])", {"sent": sent}) == len(sent)
