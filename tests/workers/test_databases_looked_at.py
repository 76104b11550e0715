"""Additional databases whose queues are sampled: each by its own sampler, under its own names."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from pytest_django import Settings

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import LatestSample, MinimumTtbr, Process, Queue, database_clock, navigation_counts, samples
from pgqueue_admin.models.queue_database import database_of, is_watched, looked_at, queue_database, write_refusal
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from pgqueue_admin.workers.supervisor.role import RoleKey, singletons
from tests.databases import Databases
from tests.monitor.tables import cut_sessions, fill, make
from tests.monitor.test_sampler import Clock

ALIASED = Address("billing:public", "Q")


@pytest.fixture
def other(databases: Databases, settings: Settings, console_database: str) -> Iterator[str]:
    """An empty database, sampled as billing with a role that may only read."""
    with databases.clone("empty") as dsn:
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": {"URL": dsn, "SCHEMAS": ["public"]}}}
        yield dsn


@pytest.fixture
def there(other: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(other)


@pytest.fixture
def sampling_there(other: str, clock: Clock) -> Iterator[SamplerProcess]:
    (billing,) = looked_at()
    with closing(SamplerProcess(billing, monotonic=clock)) as sampling:
        yield sampling


def depths() -> dict[str, int | None]:
    return {f"{each.queue}": each.depth for each in LatestSample.objects.select_related("queue")}


def test_queues_of_one_name_are_two(
    tables: Connection, there: Connection, sampling: SamplerProcess, sampling_there: SamplerProcess
) -> None:
    fill(tables, make(tables), 3)
    fill(there, make(there), 5)
    sampling.run_once()
    sampling_there.run_once()
    assert depths() == {"public.Q": 3, "billing:public.Q": 5}
    assert [*Process.objects.values_list("role", "endpoint")] == [("source-sampler", "billing")]  # one of its processes
    assert not Queue.objects.exclude(gone_since=None).exists()


def test_queue_dropped_in_one_database_stays_in_the_other(
    tables: Connection, there: Connection, sampling: SamplerProcess, sampling_there: SamplerProcess, clock: Clock
) -> None:
    make(tables)
    make(there)
    sampling.run_once()
    sampling_there.run_once()
    there.run('drop table "Q"')
    clock.now += 100
    sampling.run_once()
    sampling_there.run_once()
    assert [str(each) for each in Queue.objects.exclude(gone_since=None)] == ["billing:public.Q"]


def test_lost_database_leaves_the_other_sampled(
    tables: Connection, there: Connection, sampling: SamplerProcess, sampling_there: SamplerProcess
) -> None:
    fill(tables, make(tables), 1)
    fill(there, make(there), 1)
    sampling.run_once()
    sampling_there.run_once()
    name = there.value("select current_database()")
    cut_sessions(there)
    tables.run(f"alter database {name} allow_connections false")
    sampling_there.run_once()
    sampling.run_once()
    unread = {str(each.queue): bool(each.error) for each in LatestSample.objects.select_related("queue")}
    assert unread == {"public.Q": False, "billing:public.Q": True}
    tables.run(f"alter database {name} allow_connections true")
    sampling_there.run_once()
    assert not LatestSample.objects.exclude(error="").exists()


def test_silent_sampler_is_reported_by_the_other_sampler(
    tables: Connection, there: Connection, sampling: SamplerProcess, sampling_there: SamplerProcess
) -> None:
    fill(there, make(there), 2)
    sampling_there.run_once()
    old = database_clock.now() - timedelta(hours=1)
    LatestSample.objects.update(at=old)
    assert navigation_counts.newest() is None, "what another database's sampler saw is no sample of the first"
    sampling.run_once()
    assert LatestSample.objects.get().error == samples.SILENT
    # a sampler with a heartbeat is slow, not silent
    about = {"host": "there", "pid": 1, "start_ticks": 1, "started_at": old, "heartbeat_at": database_clock.now()}
    Process.objects.create(role="source-sampler", endpoint="billing", **about)
    LatestSample.objects.update(error="")
    sampling.run_once()
    assert LatestSample.objects.get().error == ""
    Process.objects.filter(host="there").delete()
    sampling.run_once()
    sampling_there.run_once()  # the figures are unchanged: only their time is written
    now = LatestSample.objects.get()
    assert (now.error, now.depth, now.at > old) == ("", 2, True)


def test_ttbr_of_messages_there_is_kept_by_their_queue(there: Connection, sampling_there: SamplerProcess) -> None:
    headers = """'{"NServiceBus.TimeToBeReceived":"00:01:00","NServiceBus.EnclosedMessageTypes":"Shop.Thumb, Shop"}'"""
    fill(there, make(there), 1, headers=headers)
    sampling_there.run_once()
    assert MinimumTtbr.objects.get().queue.schema == "billing:public"


def test_a_role_that_may_only_read_is_enough(
    databases: Databases, settings: Settings, console_database: str, there: Connection, other: str, clock: Clock
) -> None:
    fill(there, make(there), 4)
    there.run("create role billing_reader login password 'of the tests'")
    try:
        there.run('grant select on "Q" to billing_reader')
        place = other.partition("@")[2] or other.partition("//")[2]
        url = f"postgresql://billing_reader:of%20the%20tests@{place}"
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": {"URL": url, "SCHEMAS": ["public"]}}}
        (billing,) = looked_at()
        with billing.read_session() as session:
            assert session.value("select current_user::text") == "billing_reader"
        with closing(SamplerProcess(billing, monotonic=clock)) as sampling:
            sampling.run_once()
        assert depths() == {"billing:public.Q": 4}
    finally:
        billing.close()
        cut_sessions(there)
        there.run("drop owned by billing_reader")
        there.run("drop role billing_reader")


def test_nothing_is_ever_written_there(other: str) -> None:
    (billing,) = looked_at()
    with pytest.raises(PermissionError, match="billing is only looked at"), billing.write_session():
        pass
    with billing.read_session() as session, pytest.raises(DatabaseError):
        session.run("create table harm ()")


def test_an_address_means_one_database(other: str) -> None:
    (billing,) = looked_at()
    assert database_of(ALIASED) is billing
    assert database_of(Address("public", "Q")) is queue_database()
    assert database_of(Address("nobody:public", "Q")) is queue_database()
    assert [is_watched(each) for each in (ALIASED, Address("billing:secret", "Q"), Address("nobody:public", "Q"))] == [
        True, False, False,
    ]  # fmt: skip
    assert not queue_database().allows(ALIASED)
    assert not billing.allows(Address("public", "Q"))
    assert "billing" in write_refusal(ALIASED)
    assert not write_refusal(Address("public", "Q"))


def test_a_statement_for_another_database_is_not_made() -> None:
    billing = postgresql().aliased("billing")
    assert billing.browse.there(table=ALIASED).as_string(None) == postgresql().browse.there(
        table=Address("public", "Q")
    ).as_string(None)
    for elsewhere in (Address("public", "Q"), Address("stock:public", "Q"), Address("billing:", "Q")):
        with pytest.raises(AddressUnreadable):
            billing.browse.there(table=elsewhere)
    assert billing.parse_address(billing.canonical(ALIASED).replace("billing:", "")) == ALIASED


def test_each_has_a_process_of_its_own(settings: Settings) -> None:
    nobody = {"URL": "postgresql://nobody@127.0.0.1:1/none", "SCHEMAS": ["public"]}
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": nobody, "stock": nobody}}
    commands = {role.key: role.command for role in singletons() if role.key.kind == "source-sampler"}
    assert commands == {
        RoleKey("source-sampler", alias): ("sampler", "--database", alias) for alias in ("billing", "stock")
    }
