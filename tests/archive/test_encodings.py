"""Databases that are not in UTF-8: messages with unsupported letters are archived, and block nothing behind them."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from pgqueue_admin.archive import schema, store, text_index, text_search
from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.archive.messages import ArchiveFilter, DeadMessage
from pgqueue_admin.archive.search_terms import Lane, Term
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire import headers as h
from tests.archive.conftest import ERROR
from tests.transport.recording_observer import insert

SAID = 'Zoë owes "12 €" \\ 😀'
READ = {
    "LATIN1": 'Zoë owes "12 \\u20ac" \\ \\ud83d\\ude00',
    "EUC_TW": 'Zo\\u00eb owes "12 \\u20ac" \\ \\ud83d\\ude00',
    "SQL_ASCII": SAID,
    "UTF8": SAID,
}
FAILED = {h.EXCEPTION_TYPE: "Shop.Declined", h.FAILED_Q: '"public"."Sales"', h.MESSAGE_ID: "one"}


@pytest.fixture
def archive(encoded: str, connect: Callable[..., Connection]) -> Connection:
    session = connect(encoded)
    schema.install(session)
    return session


@pytest.mark.parametrize(("encoded", "read"), READ.items(), indirect=["encoded"])
def test_an_error_queue_is_emptied_whatever_was_said(encoded: str, archive: Connection, read: str) -> None:
    TableQueue(postgresql(), ERROR).create(archive)
    for said in (SAID, "plain"):
        told = {**FAILED, h.EXCEPTION_MESSAGE: said, h.ENCLOSED_MESSAGE_TYPES: f"Shop.{said}"}
        insert(encoded, "error", json.dumps(told))
    assert ingest(archive, ERROR).dead == 2
    found = archive.all("select exception_message, message_type, message from messages.message_archive order by seq")
    assert [row.exception_message for row in found] == [read, "plain"]
    assert found[0].message["type"] == found[0].message_type


@pytest.mark.parametrize(("encoded", "read"), READ.items(), indirect=["encoded"])
def test_an_endpoint_archives_whatever_it_was(archive: Connection, read: str) -> None:
    dead = DeadMessage(queue='"public"."Sales"', message_id="one", message_type=SAID, exception_message=SAID)
    store.archive_failed(archive, dead)
    store.archive_failed(archive, replace(dead, message_id=None, message_type="plain"))
    found = archive.all("select exception_message, message_type, message from messages.message_archive order by seq")
    assert [(row.exception_message, row.message["type"]) for row in found] == [(read, read), (read, "plain")]


@pytest.mark.parametrize("encoded", READ, indirect=["encoded"])
@pytest.mark.parametrize("word", ["owes", "OWES", "Zoë owes", r"Zo\u00eb owes", "u00eb", "4711", "303 253"])
def test_texts_are_found_by_their_index_whatever_the_encoding(archive: Connection, word: str) -> None:
    for body in (SAID.encode(), SAID.encode("latin-1", "replace"), b"\xff\x004711", b"\\303\\253", None):
        store.archive_failed(archive, DeadMessage(queue="q", headers='{"a":"Zo\\u00eb owes"}', body=body))
    text_index.build(archive)
    archive.run("set enable_seqscan = off")
    for field in ("", "headers", "body"):
        asked = ArchiveFilter(state="", also=(Term(field, word),))
        looked = text_search.look_through(archive, asked)
        assert looked.is_by_index
        rows = text_search.look_for(archive, asked.columns, asked.texts, (Lane("all"),))
        assert sorted(looked.ids) == sorted(rows.ids)
