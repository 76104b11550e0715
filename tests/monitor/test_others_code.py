"""Looking at a table runs no code of its owner: no policies, no views, no functions that the planner evaluates."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError, NotLookedInto, ReadOnly
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.dialect import compose
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.sampler import FIND_EVERY, QueueSample, Sampler

Connect = Callable[..., Connection]
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
COLUMNS = "id uuid, expires timestamp, headers text, body bytea, seq bigint"
TABLE = f'create table "Q" ({COLUMNS})'
Q = Address("eve", "Q")
CODE = """

create function evil(number bigint) returns bigint immutable language plpgsql as $$
begin
    perform set_config('default_transaction_read_only', 'off', false);
    perform pg_notify('ran', current_user::text);
    return number;
end $$;
create type strange as (number bigint);
create function evil(it strange) returns bigint immutable language sql as $$ select eve.evil((it).number) $$;
create cast (strange as bigint) with function evil(strange) as implicit;
"""
TRAPS = {
    "policy": f'{TABLE}; alter table "Q" enable row level security; create policy p on "Q" using (evil(seq) > 0)',
    "policy that shows all": f'{TABLE}; alter table "Q" enable row level security; create policy p on "Q" using (true)',
    "index predicate": f'{TABLE}; create index on "Q" (seq) where evil(1) = 1',
    "index expression": f'{TABLE}; create index on "Q" ((seq + evil(1)))',
    "statistics": f'{TABLE}; create statistics s on (seq + evil(1)) from "Q"',
    "partition key": f'create table "Q" ({COLUMNS}) partition by range ((seq + evil(1)));'
    'create table "Q1" partition of "Q" for values from (0) to (10)',
    "check of a part": f'create table "Q" ({COLUMNS}) partition by range (seq);'
    'create table "Q1" partition of "Q" (check (evil(1) = 1)) for values from (0) to (10)',
    "check of an heir": f'{TABLE}; create table heir (check (evil(1) = 1)) inherits ("Q")',
    "cast": TABLE.replace("seq bigint", "seq strange"),
}
HARMLESS = {
    "check": f'{TABLE}; alter table "Q" add check (evil(1) = 1)',
    "default": f'{TABLE}; alter table "Q" alter seq set default evil(1)',
    "generated": f'{TABLE}; alter table "Q" add g bigint generated always as (evil(seq)) stored',
    "trigger": f"""{TABLE}; create function tr() returns trigger language plpgsql as $$ begin return null; end $$;
        create trigger t before insert on "Q" for each row execute function tr()""",
}


@pytest.fixture
def eve(connection: Connection, database: str, connect: Connect) -> Iterator[Connection]:
    """A role that may create anything in its own schema."""
    connection.run("create role eve login; create schema eve authorization eve; create role looker login")
    eve = connect(database)
    eve.run("set role eve; set search_path = eve, pg_catalog")
    eve.run(f"grant usage on schema eve to looker; {CODE}")
    yield eve
    connection.run("drop schema eve cascade; drop owned by eve, looker; drop role eve, looker")


@pytest.fixture
def looker(eve: Connection, database: str, connect: Connect) -> Connection:
    looker = connect(database, read_only=True)
    looker.run("set role looker")
    return looker


@pytest.fixture
def sampler(looker: Connection) -> Sampler:
    return Sampler(lambda: looker, ["eve"])


@pytest.fixture
def ran(database: str, connect: Connect, eve: Connection) -> Callable[[], list[str]]:
    """The roles that the code ran as since the last call."""
    ears = connect(database)
    ears.listen("ran")

    def heard() -> list[str]:
        ears.run("select pg_notify('ran', 'asked')")  # earlier notifications arrive before this one
        told: list[str] = []
        while "asked" not in told:
            told += [each.payload for each in ears.notifications(5)]
        return [each for each in told if each != "asked"]

    return heard


def sample(sampler: Sampler) -> QueueSample:
    (found,) = [each for each in sampler.sample(NOON) if each.table.address == Q]
    return found


@pytest.mark.parametrize("trap", TRAPS)
def test_nothing_of_its_owner_runs_and_why_is_said(
    eve: Connection, looker: Connection, sampler: Sampler, ran: Callable[[], list[str]], trap: str
) -> None:
    eve.run(f"{TRAPS[trap]}; grant select on all tables in schema eve to looker")
    ran()  # creating it runs it as its owner
    seen = sample(sampler)
    assert seen.depth is None
    if trap != "cast":  # its column type is not one of a queue
        assert ("policy" in seen.error) if "policy" in trap else ("eve.evil(bigint)" in seen.error)
        with pytest.raises(NotLookedInto):
            discovery.readable(looker, Q)
    assert ran() == []
    assert looker.value("show default_transaction_read_only") == "on"


@pytest.mark.parametrize("trap", ["index predicate", "statistics"])
def test_a_trap_that_is_set_between_two_looks(
    eve: Connection, sampler: Sampler, ran: Callable[[], list[str]], trap: str
) -> None:
    eve.run(f"{TABLE}; grant select on all tables in schema eve to looker")
    assert sample(sampler).depth is not None
    eve.run(TRAPS[trap].removeprefix(TABLE))
    ran()
    assert "eve.evil(bigint)" in sample(sampler).error
    assert ran() == []


def test_a_table_that_became_a_view_between_two_looks(
    eve: Connection, sampler: Sampler, ran: Callable[[], list[str]]
) -> None:
    eve.run(f"{TABLE}; grant select on all tables in schema eve to looker")
    assert sample(sampler).depth is not None
    expires = "null::timestamp as expires, '{}'::text as headers, null::bytea as body"
    made = f'create view "Q" as select gen_random_uuid() as id, {expires}, evil(1) as seq'
    eve.run(f'drop table "Q"; {made}; grant select on "Q" to looker')
    seen = sample(sampler)
    assert seen.depth is None
    assert seen.error
    assert ran() == []


@pytest.mark.parametrize("made", HARMLESS)
def test_tables_with_harmless_code_are_measured(
    eve: Connection, sampler: Sampler, ran: Callable[[], list[str]], made: str
) -> None:
    eve.run(f"{HARMLESS[made]}; grant select on all tables in schema eve to looker")
    ran()
    assert sample(sampler).depth is not None
    assert ran() == []


def test_the_sampler_leaves_a_session_that_was_changed_from_within(database: str, connect: Connect) -> None:
    opened: list[Connection] = []

    def another() -> Connection:
        opened.append(connect(database, read_only=True))
        return opened[-1]

    now = [0.0]
    sampler = Sampler(another, ["public"], monotonic=lambda: now[0])
    sampler.sample(NOON)
    opened[0].run("set default_transaction_read_only = off")
    now[0] += FIND_EVERY
    sampler.sample(NOON)
    assert [each.closed for each in opened] == [True, False]


def test_a_function_that_a_superuser_owns_is_trusted(connection: Connection, eve: Connection, sampler: Sampler) -> None:
    eve.run(f"{TRAPS['index expression']}; grant select on all tables in schema eve to looker")
    connection.run("alter function eve.evil(bigint) owner to current_user")
    assert sample(sampler).depth is not None


@pytest.mark.parametrize("ways", ["one", "batch", "transaction", "transaction_with"])
def test_each_look_says_itself_that_it_only_reads(
    connection: Connection, database: str, connect: Connect, ways: str
) -> None:
    """Even if the session's default was changed from within, as a policy's function can do."""
    connection.run("create table public.theirs (number int)")
    pool = postgresql().pool(database, read_only=True)
    with pool.connection() as pooled:
        for session in (pooled, connect(database, read_only=True)):
            session.run("set default_transaction_read_only = off")
            with pytest.raises(ReadOnly):
                _write(session, ways)
            with pytest.raises(DatabaseError):
                session.one(_statement("select 1 / 0 as failed"))
            assert session.value(_statement("select current_setting('transaction_read_only')")) == "on"
            assert not session.in_transaction
    pool.close()
    assert connection.value("select count(*) from public.theirs") == 0


def _statement(text: str) -> object:
    return compose(text, {})


def _write(session: Connection, ways: str) -> None:
    insert = _statement("insert into public.theirs values (1) returning number")
    if ways == "one":
        session.one(insert)
    elif ways == "batch":
        session.batch([(_statement("select 1 as one"), None), (insert, None)])
    elif ways == "transaction":
        with session.transaction():
            session.one(insert)
    else:
        with session.transaction_with(insert):
            pass


CHANGES = {"search_path": "eve", "role": "looker", "statement_timeout": "0", "TimeZone": "Asia/Tokyo"}
OF_LOOKS = {**CHANGES, "default_transaction_read_only": "off", "row_security": "on"}


@pytest.mark.parametrize(
    ("looks", "name", "value"),
    [*((True, *each) for each in OF_LOOKS.items()), *((False, *each) for each in CHANGES.items())],
)
def test_a_session_that_was_changed_from_within_is_not_lent_again(
    eve: Connection, database: str, looks: bool, name: str, value: str
) -> None:
    change = f"set_config('{name}', '{value}', false)"
    pool = postgresql().pool(database, read_only=looks, statement_timeout=5)
    pids = []
    for asked in ("1", change, "1"):
        with pool.connection() as session:
            pids.append(session.value("select pg_backend_pid()"))
            session.value(f"select {asked}")
    pool.close()
    assert pids[0] == pids[1] != pids[2]
