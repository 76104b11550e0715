"""The cost of an indexed text search, however many messages there are."""

from collections.abc import Iterator

import pytest
from psycopg.conninfo import make_conninfo

from pgqueue_admin.archive import search_condition, store, text_index, text_search
from pgqueue_admin.archive.indexed_texts import WIDE
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_terms import AnyOf, Excluded, Lane, Node, Term
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from tests.databases import Databases
from tests.explain import BY_INDEX, Plan, executed

ROWS = 30_000
FILL = """
insert into messages.message_archive (
    created_at, message, result, handled_by, kind, queue, message_id, message_type, headers, body, exception_type,
    exception_message, endpoint, died_at)
select now(), '{}', case when i %% 10 = 0 then 'failed' else 'success' end::public.message_status, 'w', 'transport',
    concat('"public"."Q', i %% 100, '"'), md5(concat('m', i)), concat('Shop.Type', i %% 50),
    concat('{"NServiceBus.ConversationId":"', md5(concat('c', i)), '","NServiceBus.OriginatingEndpoint":"Sales"}'),
    convert_to(concat('{"OrderId":"', md5(concat('o', i)), '","Customer":"C', i %% 1000, '","Total":12.50}'), 'UTF8'),
    case when i %% 10 = 0 then concat('Shop.Failed', i %% 30) end, case when i %% 10 = 0 then 'Card refused' end,
    concat('E', i %% 20), now() - i * interval '1 minute'
from generate_series(1, %(rows)s) i
"""


@pytest.fixture(scope="module")
def filled(databases: Databases) -> Iterator[Connection]:
    with databases.clone("engine") as dsn, postgresql().connect(dsn, for_handlers=True) as connection:
        connection.run("alter table messages.message_archive disable trigger user")
        connection.run(FILL, {"rows": ROWS})
        with postgresql().connect(dsn) as builder:
            text_index.build(builder)
        connection.run("vacuum analyze messages.message_archive")
        yield connection


def plan_of(connection: Connection, *nodes: Node) -> Plan:
    asked = ArchiveFilter(state="", also=nodes)
    parts = search_condition.looking_by_index(asked.columns, asked.texts, WIDE, text_search.BY_INDEX)
    assert parts
    look = postgresql().text_index.look(chosen=parts.chosen, columns=parts.columns, texts=parts.texts)
    return executed(connection, look, {**parts.params, "most": text_search.BY_INDEX})


@pytest.mark.parametrize(
    ("nodes", "most_blocks"),
    [
        ([Term("body", "08a1d6b4c2")], 400),
        ([Term("", "refused nobody")], 2_500),
        ([Term("headers", "08a1d6b4c2")], 400),
        ([Term("message", "4711")], 2_500),
        ([Term("conversation", "9f61408e3afb633e50cdf1b20de6f466", "is")], 600),
        ([Term("header", "9f61408e", "starts", ("NServiceBus.ConversationId",))], 400),
        ([AnyOf((Term("body", "08a1d6b4c2"), Term("body", "9f61408e3a")))], 800),
        ([Term("body", "08a1d6b4c2"), Excluded(Term("headers", "Sales")), Term("state", "dead", "is")], 400),
        ([Term("body", "qqq")], 400),  # three letters, the minimum
    ],
)
def test_texts_are_found_by_their_index(filled: Connection, nodes: list[Node], most_blocks: int) -> None:
    plan = plan_of(filled, *nodes)
    assert plan.reads("message_archive") <= BY_INDEX, plan
    assert "message_archive_text" in plan.indexes, plan
    assert plan.blocks < most_blocks, plan


def test_found_messages_are_read_again_by_the_text_index(filled: Connection) -> None:
    asked = ArchiveFilter(state="dead", also=(Term("body", "08a1d6b4c2"),), window=(Lane(WIDE),))
    archive = postgresql().archive
    plan = executed(filled, archive.ids(**store.matching(asked)), asked.params())
    assert plan.reads("message_archive") <= BY_INDEX, plan
    assert "message_archive_text" in plan.indexes, plan
    assert plan.blocks < 400, plan


def test_a_plan_that_is_kept_for_whatever_is_looked_for_reads_no_table(filled: Connection) -> None:
    """After some searches a session with prepared statements uses a generic plan, which does not know the text."""
    info = filled.raw.info
    with postgresql().connect(make_conninfo(info.dsn, password=info.password)) as session:
        session.run("set plan_cache_mode = force_generic_plan")
        with session.transaction():
            for word in ("08a1d6b4c2", "9f61408e3a", "4711", "qqq"):
                asked = ArchiveFilter(state="", also=(Term("body", word),))
                assert text_search.by_index(session, asked)
            read = "select seq_scan from pg_stat_xact_all_tables where relid = 'messages.message_archive'::regclass"
            assert session.value(read) == 0


def test_term_of_most_messages_reads_a_bounded_number_of_blocks(filled: Connection) -> None:
    plan = plan_of(filled, Term("body", "OrderId"))
    assert plan.blocks < 4_000, plan


def test_where_the_index_is_gone_the_archive_is_not_read(filled: Connection) -> None:
    with filled.raw.transaction(force_rollback=True):
        filled.run("drop index messages.message_archive_text")
        plan = plan_of(filled, Term("body", "08a1d6b4c2"))
    assert plan.blocks < 50, plan
