"""Databases not in UTF-8: a message is stored unchanged or refused, and an ending is never refused."""

from collections.abc import Callable

import psycopg
import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseQueue, MessageRefused
from tests.lease.tables import archived

MESSAGE = {"kind": "render", "naïve": ["größe", 1]}


@pytest.mark.parametrize(
    ("encoded", "has_all"), [("LATIN1", False), ("SQL_ASCII", True), ("WIN1252", False)], indirect=["encoded"]
)
def test_letters_that_the_database_does_not_have(
    encoded: str, has_all: bool, connect: Callable[..., Connection]
) -> None:
    engine = connect(encoded)
    schema.install(engine)
    queue = LeaseQueue(encoded, name="daumen-größe")
    queue.publish(MESSAGE)
    with psycopg.connect(encoded, client_encoding="UTF8") as mine:
        queue.within(mine).publish(MESSAGE)
        if not has_all:
            with pytest.raises(MessageRefused, match="the encoding of this database"):
                queue.within(mine).publish({"city": "日本"})
    first, second = queue.claim(2)
    assert first.message == second.message == MESSAGE
    assert queue.finish(first, "failed", "zu groß")
    assert queue.finish(second, "rejected", "日本")
    queue.close()
    assert [row[1] for row in archived(engine)] == ["failed", "rejected"]
    assert archived(engine)[0][2:] == ("daumen-größe", "zu groß")
