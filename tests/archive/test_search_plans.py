"""The cost of a search: each field uses an index, however many messages there are."""

from collections.abc import Iterator

import pytest

from pgqueue_admin.archive import search_condition, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_terms import AnyOf, Excluded, Lane, Node, Span, Term
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from tests.databases import Databases
from tests.explain import BY_INDEX, Plan, executed

ROWS, MILLION = 30_000, 1_000_000
FILL = """
insert into messages.message_archive (
    created_at, message, result, handled_by, kind, queue, message_id, message_type, headers, body, exception_type,
    exception_message, endpoint, machine, attempts, sent_at, died_at, fingerprint)
select now(), '{}', case when i %% 10 = 0 then 'failed' else 'success' end::public.message_status, 'w', 'transport',
    concat('"public"."Q', i %% 100, '"'), concat('m-', i), concat('Shop.Type', i %% 50),
    concat('{"NServiceBus.ConversationId":"c-', i, '"}'), convert_to(concat('{"no":"', i, '"}'), 'UTF8'),
    case when i %% 10 = 0 then concat('Shop.Failed', i %% 30) end, 'no', concat('E', i %% 20),
    concat('host-', i %% 5), i %% 7, now() - i * interval '1 minute', now() - i * interval '1 minute',
    case when i %% 10 = 0 then lpad(to_hex(i %% 200), 16, '0') end
from generate_series(1, %(rows)s) i
"""
# The planner estimates from rows per block in the catalog and the actual number of blocks.
AS_OF_A_MILLION = """
update pg_class set reltuples = reltuples * %(million)s / %(rows)s
where oid = 'messages.message_archive'::regclass
    or oid in (select indexrelid from pg_index where indrelid = 'messages.message_archive'::regclass)
"""
FILL_OPERATION = """
insert into messages.operation_item (operation, position, archive_id) select 7, i, 10 * i from generate_series(1, 50) i
"""


@pytest.fixture(scope="module")
def filled(databases: Databases) -> Iterator[Connection]:
    with databases.clone("engine") as dsn, postgresql().connect(dsn, for_handlers=True) as connection:
        connection.run("alter table messages.message_archive disable trigger user")
        connection.run(FILL, {"rows": ROWS})
        connection.run(FILL_OPERATION)
        connection.run("update messages.message_archive set operation = 7 where id <= 30")
        connection.run("vacuum analyze messages.message_archive, messages.operation_item")
        yield connection


def plan_of(connection: Connection, asked: ArchiveFilter) -> Plan:
    archive = postgresql().archive
    query = archive.page(listed=archive.listed, is_queue=archive.is_queue, **store.matching(asked))
    return executed(connection, query, {**asked.params(), "died_at": None, "seq": None, "limit": 51})


@pytest.mark.parametrize("state", ["", "dead"])
def test_a_read_for_a_file_costs_as_a_page_does(filled: Connection, state: str) -> None:
    asked = ArchiveFilter(state=state, since="2020-01-01T00:00:00+00:00")
    query = postgresql().archive.page(listed=postgresql().archive.exported, is_queue="", **store.matching(asked))
    middle = filled.one("select died_at, seq from messages.message_archive where message_id = 'm-15000'")
    assert middle
    key = {"died_at": middle.died_at, "seq": middle.seq, "limit": 101}
    plan = executed(filled, query, {**asked.params(), **key})
    assert plan.reads("message_archive") <= BY_INDEX, plan
    assert plan.blocks < 1_500, plan


@pytest.mark.parametrize(
    "asked", [ArchiveFilter(state=""), ArchiveFilter(), ArchiveFilter(state="", queue='"public"."Q7"')]
)
def test_facet_counts_read_up_to_the_cap(filled: Connection, asked: ArchiveFilter) -> None:
    query = postgresql().archive.facets(**store.matching(asked))
    plan = executed(filled, query, {**asked.params(), "cap": 1_000, "most": 6})
    assert plan.reads("message_archive") <= BY_INDEX, plan
    assert plan.blocks < 1_300, plan


@pytest.mark.parametrize("by", ["by_sent", "by_size"])
def test_sort_without_an_index_reads_up_to_the_cap(filled: Connection, by: str) -> None:
    archive, asked = postgresql().archive, ArchiveFilter(state="", kind="transport")
    parts = {"order": archive.most_first, "behind": archive.behind_most, "value": getattr(archive, by)}
    query = archive.sorted(listed=archive.listed, is_queue=archive.is_queue, **parts, **store.matching(asked))
    key = {"value": "1", "seq": 1, "top": None, "top_seq": None}
    plan = executed(filled, query, {**asked.params(), **key, "cap": 1_000, "limit": 51})
    assert plan.reads("message_archive") <= BY_INDEX, plan
    assert plan.blocks < 1_600, plan


def test_the_oldest_first_come_by_the_same_index(filled: Connection) -> None:
    archive, asked = postgresql().archive, ArchiveFilter(state="dead")
    query = archive.page_back(listed=archive.listed, is_queue=archive.is_queue, **store.matching(asked))
    plan = executed(filled, query, {**asked.params(), "died_at": None, "seq": None, "limit": 51})
    assert plan.reads("message_archive") <= BY_INDEX, plan
    assert plan.blocks < 300, plan


def test_a_sequential_scan_would_be_seen(filled: Connection) -> None:
    asked = ArchiveFilter(state="", also=(Term("host", "host-9", "is"),))
    count = postgresql().archive.count(**store.matching(asked))
    assert executed(filled, count, {**asked.params(), "cap": ROWS}).reads("message_archive") == {"Seq Scan"}


def test_a_million_is_believed(filled: Connection) -> None:
    with filled.raw.transaction(force_rollback=True):
        filled.run(AS_OF_A_MILLION, {"million": MILLION, "rows": ROWS})
        plan = filled.value("explain (format json) select from messages.message_archive")[0]["Plan"]
    assert 0.9 * MILLION < plan["Plan Rows"] < 1.1 * MILLION


@pytest.mark.parametrize("as_of_a_million", [False, True])
@pytest.mark.parametrize(
    ("nodes", "index", "most_blocks"),
    [
        ([Term("state", "dead", "is")], "message_archive_state", 300),
        ([Term("queue", '"public"."Q7"', "is")], "message_archive_queue", 400),
        ([Term("error", "Shop.Failed20", "is")], "message_archive_exception", 400),
        ([Term("id", "m-4711", "is")], "message_archive_message_id", 30),
        ([Term("fp", f"{10:016x}", "is")], "message_archive_fingerprint", 400),
        ([Term("owner", "ana", "is", keys=(f"{10:016x}", f"{20:016x}"))], "", 900),
        ([Term("op", "7")], "message_archive_pkey", 400),
        ([Term("op", "7/skipped")], "", 400),
        ([Term("op", "7/last")], "message_archive_operation", 100),
        ([Span("died", "", 3600.0, None)], "message_archive_died", 300),
        ([Span("died", "", None, 86_400.0 * 7)], "message_archive_died", 400),
        ([Span("died", "", "2026-01-01T00:00:00+00:00", None)], "message_archive_died", 400),
        ([Term("result", "success", "is")], "message_archive_died", 400),
        ([Term("kind", "transport", "is")], "message_archive_died", 400),
        ([Term("type", "Type7")], "message_archive_died", 12_000),
        ([Term("endpoint", "E7", "is")], "message_archive_died", 6_000),
        ([Term("host", "host-3", "is")], "message_archive_died", 2_000),
        ([Span("attempts", "", 3, None)], "message_archive_died", 1_000),
        ([Span("size", "", None, 15)], "message_archive_died", 2_000),
        ([Span("sent", "", None, 3600.0)], "message_archive_died", 1_000),
        ([AnyOf((Term("queue", '"public"."Q7"', "is"), Term("queue", '"public"."Q8"', "is")))], "", 2_000),
        ([Term("state", "dead", "is"), Excluded(Term("queue", '"public"."Q10"', "is"))], "message_archive_state", 400),
    ],
)
def test_a_field_is_found_by_an_index(
    filled: Connection, nodes: list[Node], index: str, most_blocks: int, as_of_a_million: bool
) -> None:
    with filled.raw.transaction(force_rollback=True):
        if as_of_a_million:
            filled.run(AS_OF_A_MILLION, {"million": MILLION, "rows": ROWS})
        plan = plan_of(filled, ArchiveFilter(state="", also=tuple(nodes)))
    assert plan.reads("message_archive") <= BY_INDEX, plan
    assert not index or index in plan.indexes, plan
    assert plan.blocks < most_blocks, plan


@pytest.mark.parametrize("which", ["dead", "others", "all"])
def test_text_search_window_is_chosen_by_index_before_texts_are_read(filled: Connection, which: str) -> None:
    asked = ArchiveFilter(state="dead" if which == "all" else "", bodies=("nothing",), queue='"public"."Q10"')
    parts = search_condition.looking_through(asked.columns, asked.texts, which)
    query = postgresql().archive.look_through(columns=parts.columns, texts=parts.texts)
    plan = executed(filled, query, {**parts.params, "newest": None, "newest_seq": None, "rows": 100})
    assert plan.reads("message_archive") <= BY_INDEX, plan
    assert plan.blocks < 1_000, plan


def test_covered_windows_are_read_again_by_index(filled: Connection) -> None:
    bottom = filled.one("select died_at::text as at, seq from messages.message_archive where message_id = 'm-300'")
    assert bottom
    lanes = (Lane("dead", None, (bottom.at, bottom.seq)), Lane("others", None, (bottom.at, bottom.seq)))
    plan = plan_of(filled, ArchiveFilter(state="", bodies=("nothing",), window=lanes))
    assert plan.reads("message_archive") <= BY_INDEX, plan
    assert plan.blocks < 2_500, plan
