"""Every change to the archive updates the failure tallies, which equal a recount at any moment."""

from collections.abc import Callable
from typing import Any

import pytest

from pgqueue_admin.archive import dead_messages, failure_groups, failure_tallies, store
from pgqueue_admin.archive.failure_groups import STATES, FailureFigures, FailureStanding
from pgqueue_admin.archive.messages import ArchiveFilter, DeadMessage
from pgqueue_admin.archive.retention import prune
from pgqueue_admin.archive.search_terms import Span
from pgqueue_admin.dialects import Connection, visible_queues
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from tests.archive.test_dead_messages import REFUSED, newest
from tests.explain import BY_INDEX, executed
from tests.older_schema import set_back

Connect = Callable[..., Connection]

DIED = """
insert into messages.message_archive
    (created_at, message, result, handled_by, queue, kind, fingerprint, died_at, resolution)
select now(), '{}', 'failed', 'w', case when n % 5 > 0 then 'q' || n % 3 end, 'transport',
    lpad(to_hex(n % 20), 16, '0'),
    case n % 20 when 7 then 'infinity' when 8 then '-infinity' else now() end
        - case n % 20 when 1 then 1 when 2 then n / 20 % 2 * 300 + 1 else n * n % 100000 end
            * interval '7 minutes',
    (array['discarded', 'retried', null, null])[n % 4 + 1]
from generate_series(1, 400) n
"""
RECOUNT = """
select fingerprint, coalesce(queue, '"messages"."message"'), state, count(*) from messages.message_archive
where fingerprint is not null group by 1, 2, 3 order by 1, 2, 3
"""
TALLIED = """
select fingerprint, queue, state, sum(number)::bigint from (
    select * from messages.failure_tally union all select * from messages.failure_change) as each
group by 1, 2, 3 having sum(number) <> 0 order by 1, 2, 3
"""
_SQL = postgresql().failure_groups
PARTS = {"tallied": _SQL.tallied, "judging": _SQL.judging, "order": _SQL.today_first, "seen": _SQL.everywhere}
LIST = {**PARTS, "order": _SQL.in_no_order, "figures": _SQL.tallied_standings, "newest": _SQL.newest_of_day}
PARTS |= {"figures": _SQL.tallied_figures, "newest": _SQL.newest_of_group}
JUDGED = {"least": failure_groups.LEAST, "decides": failure_groups.DECIDES, "all_lately": False, "most": 3_000}
SOME = VisibleQueues(frozenset(), frozenset(), names=("q1", '"messages"."message"'))


def holds(connection: Connection) -> None:
    assert connection.all(TALLIED) == connection.all(RECOUNT)


@pytest.fixture
def filled(engine: Connection) -> Connection:
    engine.run(DIED)
    return engine


def test_tallies_follow_archive_retry_discard_restore_and_prune(ingested: Connection) -> None:
    holds(ingested)
    dead = newest(ingested, exception=REFUSED)
    others = ingested.all(
        "select id from messages.message_archive where state = 'dead' and id <> %(id)s", {"id": dead.id}
    )
    archived = DeadMessage(queue="q", exception_type="Late.Error", message_id="m")
    acts: list[Callable[[], Any]] = [
        lambda: store.archive_failed(ingested, archived),
        lambda: dead_messages.retry(ingested, [dead.id], "ana"),
        lambda: dead_messages.discard(ingested, [row.id for row in others[:20]], "ana"),
        lambda: failure_tallies.fold(ingested),
        lambda: dead_messages.restore(ingested, [row.id for row in others[:9]], "ana"),
        lambda: store.died_again(ingested, [DeadMessage(queue=dead.queue, message_id=dead.message_id)]),
        lambda: ingested.run("update messages.message_archive set resolved_at = died_at where state = 'discarded'"),
        lambda: prune(ingested, ingested.value("select now()"), None, archive_name(ingested)),
        lambda: failure_tallies.fold(ingested),
    ]
    for act in acts:
        act()
        holds(ingested)
    assert ingested.value("select count(*) from messages.failure_change") == 0


def archive_name(connection: Connection) -> str:
    found: str = connection.value("select concat('x/y/', 'messages.message_archive'::regclass::oid)")
    return found


@pytest.mark.parametrize(
    "change",
    [
        "delete from messages.message_archive where id % 3 = 0",
        "update messages.message_archive set fingerprint = 'f', queue = 'other' where id % 3 = 0",
        "update messages.message_archive set fingerprint = null where id % 3 = 0",
        "truncate messages.message_archive",
        f"set session_replication_role = replica; {DIED}",
    ],
)
@pytest.mark.parametrize("is_folded", [True, False])
def test_tallies_follow_changes_by_hand(filled: Connection, change: str, is_folded: bool) -> None:
    """By a role with rights on the archive only; the last change needs a superuser and is made by the owner."""
    if is_folded:
        failure_tallies.fold(filled)
    if "replica" not in change:
        filled.run(
            "drop role if exists stranger_of_tallies; create role stranger_of_tallies; "
            "grant usage on schema messages to stranger_of_tallies; "
            "grant all on messages.message_archive to stranger_of_tallies; set role stranger_of_tallies"
        )
    filled.run(change)
    filled.run("reset role")
    filled.run(
        "drop owned by stranger_of_tallies; drop role stranger_of_tallies" if "replica" not in change else "reset all"
    )
    holds(filled)
    failure_tallies.fold(filled)
    holds(filled)


def test_late_commit_is_tallied_when_it_commits(filled: Connection, engine_database: str, connect: Connect) -> None:
    """One transaction is open while sums are folded and recounted; another is rolled back."""
    late, undone = connect(engine_database), connect(engine_database)
    with late.transaction():
        late.run(DIED)
        late.run("delete from messages.message_archive where id % 7 = 0")
        undone.run("begin")
        undone.run(DIED)
        failure_tallies.fold(filled)
        assert failure_tallies.recount(filled) == 0
        undone.run("rollback")
        holds(filled)
        holds(late)
    holds(filled)
    failure_tallies.fold(filled)
    holds(filled)
    assert filled.value("select sum(number) from messages.failure_tally") == filled.value(
        "select count(*) from messages.message_archive where fingerprint is not null"
    )


def test_recount_finds_changes_made_past_the_triggers(filled: Connection) -> None:
    filled.run("alter table messages.message_archive disable trigger user")
    filled.run("delete from messages.message_archive where fingerprint = lpad('3', 16, '0')")
    filled.run("alter table messages.message_archive enable trigger user")
    assert failure_tallies.recount(filled) > 0
    holds(filled)
    assert failure_tallies.recount(filled) == 0


def told(connection: Connection) -> list[tuple[Any, ...]]:
    """All figures that pages show, with the state."""
    found = failure_groups.some(connection, [f"{n:016x}" for n in range(20)])
    return sorted(((*compared(each), each.state()) for each in found), key=lambda each: str(each[0]))


def compared(figures: FailureFigures) -> FailureFigures:
    """The figures without those that do not affect the state: they are not queried then."""
    figures = figures._replace(died_today=None, died_lately=None, counted_at=figures.last_at)
    return figures if figures.is_today else figures._replace(before_today=None, was_silent=False, dead_before=False)


def judged(standing: FailureStanding) -> tuple[Any, ...]:
    return standing.fingerprint, standing.dead, standing.all_dead, standing.state(), standing.may_be_new


@pytest.mark.parametrize("seen", [None, SOME], ids=["all", "some"])
def test_sums_and_a_count_say_the_same(
    filled: Connection, monkeypatch: pytest.MonkeyPatch, seen: VisibleQueues | None
) -> None:
    """Counts, times and states agree at one moment; a user who sees some queues gets those of them."""

    def all_of_it() -> list[Any]:
        asked = [None, *(ArchiveFilter(state="", queue=each) for each in ("q1", '"messages"."message"', "none"))]
        asked += [
            ArchiveFilter(state="", also=(Span("died", "", 86_400.0, None),)),
            ArchiveFilter(state="", type_is="T"),
        ]
        found = [each for of in asked for each in failure_groups.groups(filled, of)]
        assert len(found) > 20
        states.append([each.state() for each in found])
        listed = [each for of in asked for each in failure_groups.standings(filled, of)]
        assert {judged(each) for each in listed} == {judged(each.standing) for each in found}
        assert len(listed) == len(found)
        few = [each.standing for each in failure_groups.groups(filled, None, 5)]
        assert list(map(judged, failure_groups.standings(filled, None, 5))) == list(map(judged, few))
        first = failure_groups.firsts(filled, [each.fingerprint for each in found])
        assert first == {each.fingerprint: each.first_at for each in found}
        return [*map(compared, found), *told(filled)]

    states = list[Any]()
    with filled.transaction(), visible_queues.within(seen):
        kept = all_of_it()
        monkeypatch.setattr(failure_tallies, "are_kept", lambda connection: False)
        assert kept == all_of_it()
        assert states[0] == states[1]
        assert seen or {each[-1] for each in kept} >= set(STATES)


BY_QUEUE = """
select coalesce(queue, '"messages"."message"') as name, count(*) as dead, count(distinct fingerprint) as causes,
    greatest(least(min(died_at), now()), '0001-01-02') as first_at,
    greatest(least(max(died_at), now()), '0001-01-02') as last_at, false
from messages.message_archive where state = 'dead' and {seen} group by 1 order by 2 desc, 1
"""


@pytest.mark.parametrize("seen", [None, SOME], ids=["all", "some"])
def test_by_queue_all_that_lies_dead_is_counted(filled: Connection, seen: VisibleQueues | None) -> None:
    """Messages without failure or error count too; a search, or too many without failure, is counted to a limit."""
    filled.run("update messages.message_archive set exception_type = 'E' || id % 4 where id % 3 > 0")
    failure_tallies.fold(filled)
    filled.run("update messages.message_archive set fingerprint = null where id % 11 = 0")
    some = """coalesce(queue, '"messages"."message"') in ('q1', '"messages"."message"')""" if seen else "true"
    everything, died = ArchiveFilter(state=""), ArchiveFilter(state="", since="-infinity")
    with filled.transaction(), visible_queues.within(seen):
        recount = [tuple(row) for row in filled.all(BY_QUEUE.format(seen=some))]
        assert len(recount) == (2 if seen else 4)
        few = failure_groups.by_name(filled, "queue", everything, 100, 5)
        assert sum(each.dead for each in few) == 5
        assert all(each.more for each in few)
        assert failure_groups.by_name(filled, "queue", died, 100, 400) == recount
        assert sum(each[1] for each in recount) > 90
        assert failure_groups.by_name(filled, "queue", everything, 100, 90) == recount


def test_no_page_counts_the_archive(filled: Connection) -> None:
    """The cost depends on the number of failures, twenty here, not on the number of messages."""
    filled.run(DIED.replace("400", "40000").replace("7 minutes", "2 days"))
    failure_tallies.fold(filled)
    filled.run("vacuum analyze messages.message_archive, messages.failure_tally, messages.failure_change")
    sql = postgresql().failure_groups
    plan = executed(filled, sql.tallied_groups(**LIST), JUDGED)
    assert plan.reads("message_archive") <= BY_INDEX
    assert plan.blocks < 20 * 25
    one = {**JUDGED, "fingerprints": [f"{3:016x}"]}
    assert executed(filled, sql.tallied_some(**PARTS), one).blocks < 40
    in_queue = sql.tallied_found(found=sql.found_in_queue, **LIST)
    found = executed(filled, in_queue, {**JUDGED, "queue": "q1"})
    assert found.reads("message_archive") <= BY_INDEX
    assert found.blocks < 20 * 25


def test_recent_deaths_are_counted_only_where_the_state_needs_them(filled: Connection) -> None:
    """New failures need no count, others only as many of a day's deaths as decide. An incident may have 100,000."""
    filled.run("truncate messages.message_archive")
    filled.run(DIED.replace("400", "20000").replace("n * n % 100000", "0"))
    assert {each.died_lately for each in failure_groups.groups(filled) if each.state() == "new"} == {None}
    failure_tallies.fold(filled)
    filled.run("vacuum analyze messages.failure_tally, messages.failure_change")
    filled.run("analyze messages.message_archive")
    plan = executed(filled, postgresql().failure_groups.tallied_groups(**LIST), JUDGED)
    assert plan.blocks < 2_500  # of 20,000 messages; an unvacuumed index makes it check each in the table


def test_tables_of_a_version_before_are_counted(filled: Connection) -> None:
    before = told(filled)
    set_back(filled, 10)
    assert [each[:3] for each in told(filled)] == [each[:3] for each in before]
    assert failure_tallies.fold(filled) == failure_tallies.recount(filled) == 0


def test_role_without_grants_on_tallies_counts_the_archive(filled: Connection) -> None:
    """Grants made before the tallies existed do not name them."""
    before = told(filled)
    filled.run(
        "create role reader_of_archive; grant usage on schema messages to reader_of_archive; "
        "grant select on messages.message_archive to reader_of_archive; set role reader_of_archive"
    )
    assert [each[:3] for each in told(filled)] == [each[:3] for each in before]
    filled.run("reset role; drop owned by reader_of_archive; drop role reader_of_archive")
