"""Groups of a large archive are read from one index; one page of a group takes a few probes of it."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from pgqueue_admin.archive import failure_groups, failure_tallies, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Connection, visible_queues
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from tests.databases import Databases
from tests.explain import BY_INDEX, executed
from tests.waiting import until

ROWS, GROUPS = 30_000, 300
FILLED = f"""
insert into messages.message_archive
    (created_at, message, result, handled_by, queue, kind, body, fingerprint, died_at, resolution)
select now(), '{{}}', 'failed', 'w', 'q' || n % 7, 'transport', decode(repeat('ab', 1500), 'hex'),
    lpad(to_hex(n % {GROUPS}), 16, '0'), now() - n * interval '1 minute', case when n % 3 = 0 then 'discarded' end
from generate_series(1, {ROWS}) n
"""
SOME = VisibleQueues(frozenset(), frozenset(), names=("q3", "q5"))
ONE = {"fingerprint": "0000000000000007"}


@pytest.fixture(scope="module")
def filled(databases: Databases) -> Iterator[Connection]:
    with databases.clone("engine") as dsn, postgresql().connect(dsn, for_handlers=True) as connection:
        connection.run(FILLED)
        until(lambda: all_visible(connection), what="a vacuum that nobody's snapshot held up")
        yield connection


def all_visible(connection: Connection) -> bool:
    """Return whether an index-only scan needs no table reads, as after an autovacuum."""
    connection.run("vacuum analyze messages.message_archive")
    asked = "select relallvisible >= relpages from pg_class where oid = 'messages.message_archive'::regclass"
    return bool(connection.value(asked))


def test_counts_are_those_of_a_recount(filled: Connection) -> None:
    recount = filled.all("select fingerprint, count(*) from messages.message_archive where state = 'dead' group by 1")
    found = failure_groups.groups(filled)
    assert {group.fingerprint: group.dead for group in found} == {row[0]: row[1] for row in recount}
    asked = ArchiveFilter(state="", queue="q3")
    assert (
        sum(group.dead for group in failure_groups.groups(filled, asked))
        == store.count(filled, ArchiveFilter(queue="q3"), ROWS).number
    )
    assert sum(
        each.dead for each in failure_groups.by_name(filled, "queue", ArchiveFilter(state=""), 100, ROWS)
    ) == sum(row[1] for row in recount)
    every = filled.all("select distinct fingerprint from messages.message_archive order by 1")
    assert failure_groups.all_fingerprints(filled) == [row[0] for row in every]
    assert len(every) == GROUPS > len(found)


def test_of_more_than_a_cap_the_newest_are_counted_by_type(filled: Connection) -> None:
    """No index covers a message's type: a page must not read ten million dead messages."""
    recount = filled.all(
        "select count(*) as dead, count(distinct fingerprint) as causes, min(died_at), max(died_at) from (select * from"
        " messages.message_archive where state = 'dead' order by died_at desc, seq desc limit 500) newest"
    )
    (found,) = failure_groups.by_name(filled, "type", ArchiveFilter(state=""), 100, 500)
    assert found == ("", *recount[0], True)
    (every,) = failure_groups.by_name(filled, "type", ArchiveFilter(state=""), 100, ROWS)
    assert (every.dead, every.more) == (store.count(filled, ArchiveFilter(), ROWS).number, False)


def test_other_names_are_counted_without_a_walk_of_all_that_are_dead(filled: Connection) -> None:
    while failure_tallies.fold(filled):
        filled.run("vacuum analyze messages.failure_tally, messages.failure_change")
    sql = postgresql().failure_groups
    asked = ArchiveFilter()
    by_type = sql.by_name(name=sql.of_type, **store.matching(asked))
    plan = executed(filled, by_type, {**asked.params(), "most": 201, "cap": 500})
    assert plan.reads("message_archive") <= BY_INDEX
    assert plan.blocks < 1_500  # of 20,000 dead
    by_queue = executed(filled, sql.tallied_queues(seen=sql.everywhere), {"most": 201})
    assert by_queue.reads("message_archive") <= BY_INDEX
    assert by_queue.indexes <= {"message_archive_dead", "message_archive_no_fingerprint", "failure_tally_pkey"}
    assert by_queue.blocks < 400


def test_groups_within_a_queue_scope_are_recounted_for_it(filled: Connection) -> None:
    recount = filled.all(
        "select fingerprint, count(*) filter (where state = 'dead') as dead, min(died_at), count(*)"
        " from messages.message_archive where queue in ('q3', 'q5') group by 1"
    )
    with visible_queues.within(SOME):
        found = failure_groups.groups(filled)
        assert {group.fingerprint: (group.dead, group.first_at) for group in found} == {
            row[0]: (row[1], row[2]) for row in recount if row[1]
        }
        one = recount[0]
        assert {each.queue for each in failure_groups.places(filled, [one[0]])} <= set(SOME.names)
        assert {each.queue for each in failure_groups.members(filled, one[0])} <= set(SOME.names)
        assert sum(failure_groups.bars(filled, one[0], 86_400, 30)) == one[3]
        hours = failure_groups.hours(filled, [group.fingerprint for group in found])
        today = "died_at > now() - interval '24 hours' and died_at <= now() and queue in ('q3', 'q5')"
        count = f"select count(*) from messages.message_archive where fingerprint = any(%(of)s) and {today}"
        assert sum(sum(each.deaths) for each in hours.values()) == filled.value(count, {"of": list(hours)}) > 0
    with visible_queues.within(VisibleQueues(frozenset(), frozenset())):
        assert failure_groups.groups(filled) == []
        assert failure_groups.group(filled, one[0]) is None
        assert failure_groups.newest(filled, [one[0]]) == {}


def test_of_each_of_a_list_few_rows_are_read(filled: Connection) -> None:
    """They lie anywhere in the archive: reading 200 rows for each of 50 failures was most of the page's cost."""
    one, other = ONE["fingerprint"], f"{8:016x}"
    looked = Counter[str]()
    for place in failure_groups.places(filled, [one, other]):
        looked[place.fingerprint] += place.messages
    assert looked == {one: failure_groups.PLACES_OF_MANY, other: failure_groups.PLACES_OF_MANY}
    (alone,) = failure_groups.some(filled, [one])
    assert sum(place.messages for place in failure_groups.places(filled, [one])) == alone.dead > 20


def test_statements_of_pages_are_prepared() -> None:
    """A semicolon, even in a comment, prevents preparing: each page would plan the statement anew."""
    sql = postgresql().failure_groups
    parts = {each.name: each for each in sql} | {"newest": sql.newest_of_group, "order": sql.today_first}
    parts |= {
        "seen": sql.everywhere,
        "found": sql.found_in_queue,
        "matches": sql.everywhere,
    }
    parts |= {"figures": sql.tallied_figures, "dead": sql.all_dead}
    named = [each for each in sql if f"{{{each.name}}}" not in each.text]
    assert [each.name for each in named if not each(**{**parts, "name": sql.of_type}).is_single] == []


@pytest.mark.parametrize("name", ["places", "hours", "members", "operations"])
def test_group_within_a_queue_scope_is_read_by_index(filled: Connection, name: str) -> None:
    sql = postgresql().failure_groups
    params = {**ONE, "fingerprints": [ONE["fingerprint"]], "most": 20, "seen": list(SOME.names)}
    plan = executed(filled, getattr(sql, name)(seen=sql.in_seen), params)
    assert plan.reads("message_archive") <= BY_INDEX
    assert plan.blocks < 200


def test_all_groups_are_read_from_the_index_alone(filled: Connection) -> None:
    sql = postgresql().failure_groups
    plan = executed(filled, sql.groups(figures=sql.figures, dead=sql.all_dead, seen=sql.everywhere), {"most": 1_000})
    assert plan.scans == {("message_archive", "Index Only Scan")}
    assert plan.indexes == {"message_archive_fingerprint"}
    assert plan.blocks < 700


@pytest.mark.parametrize(
    ("name", "params", "most_blocks"),
    [
        ("places", {"fingerprints": [ONE["fingerprint"]], "most": 20}, 60),
        ("hours", {"fingerprints": [ONE["fingerprint"]]}, 20),
        ("bars", {**ONE, "step": 60, "steps": 60}, 20),
        ("members", {**ONE, "most": 20}, 60),
        ("operations", {**ONE, "most": 20}, 60),
    ],
)
def test_single_group_is_read_by_its_index(
    filled: Connection, name: str, params: dict[str, Any], most_blocks: int
) -> None:
    sql = postgresql().failure_groups
    plan = executed(filled, getattr(sql, name)(seen=sql.everywhere), params)
    assert plan.reads("message_archive") <= BY_INDEX
    assert plan.blocks < most_blocks


def test_newest_failure_of_a_group_is_read_by_its_index(filled: Connection) -> None:
    sql = postgresql().failure_groups
    newest = sql.newest(told_by=sql.told_by, seen=sql.everywhere)
    plan = executed(filled, newest, {"fingerprints": [ONE["fingerprint"]]})
    assert plan.reads("message_archive") <= BY_INDEX
    assert plan.blocks < 20


def test_its_messages_are_paged_by_its_index(filled: Connection) -> None:
    archive = postgresql().archive
    asked = ArchiveFilter(fingerprint=ONE["fingerprint"])
    params = {**asked.params(), "died_at": None, "seq": None, "limit": 20}
    plan = executed(
        filled, archive.page(listed=archive.listed, **store.matching(asked), is_queue=archive.is_queue), params
    )
    assert plan.reads("message_archive") <= BY_INDEX
    assert plan.blocks < 200
