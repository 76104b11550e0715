"""Acts on schedules: validated before anything is written, and audited in the same transaction."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services import schedules
from pgqueue_admin.services.endpoint_change import ActRefused, ChangedMeanwhile
from pgqueue_admin.services.schedules import Act, ScheduleDraft

Connect = Callable[..., Connection]
NIGHTLY = ScheduleDraft("Nightly", schedules.LEASE, "", '{"kind": "sweep"}', "30 2 * * *", "Europe/Vienna", "skip")
ANA = Act("ana", "command", "since it is wanted")


@pytest.fixture(autouse=True)
def archive(console_database: str) -> str:
    """No dead messages."""
    return console_database


@pytest.fixture
def engine(archive: str, connect: Connect) -> Connection:
    return connect(archive)


def audited() -> list[tuple[str, str, str]]:
    return list(AuditEntry.objects.order_by("id").values_list("verb", "subject", "who"))


def test_each_act_is_audited(engine: Connection) -> None:
    schedule = schedules.add(NIGHTLY, ANA)
    schedules.save(schedule, replace(NIGHTLY, expression="0 3 * * *"), ANA)
    schedules.pause(schedule, ANA)
    schedules.resume(schedule, ANA)
    schedules.run_now(schedule, ANA)
    schedules.remove(schedule, ANA)
    assert audited() == [(verb, "Nightly", "ana") for verb in ("create", "set", "pause", "resume", "run now", "remove")]
    entry = AuditEntry.objects.get(verb="set")
    assert entry.before
    assert entry.after
    assert (entry.before["expression"], entry.after["expression"]) == ("30 2 * * *", "0 3 * * *")
    assert entry.reason == "since it is wanted"
    assert engine.value("select count(*) from messages.message") == 1
    assert engine.value("select count(*) from messages.schedule") == 0


@pytest.mark.parametrize(
    ("about", "field"),
    [
        ({"expression": "0 0 30 2 *"}, "expression"),
        ({"expression": "2020-01-01 00:00"}, "expression"),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"message": "{"}, "message"),
        ({"to": "Nowhere"}, "to"),
        ({"to": '"pg_catalog"."pg_class"'}, "to"),
        ({"to": '"x'}, "to"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 101}, "name"),
    ],
)
def test_invalid_schedule_is_refused_and_nothing_is_written(
    engine: Connection, about: dict[str, Any], field: str
) -> None:
    with pytest.raises(ScheduleRefused) as refused:
        schedules.add(replace(NIGHTLY, **about), ANA)
    assert refused.value.field == field
    assert (engine.value("select count(*) from messages.schedule"), audited()) == (0, [])


def test_a_name_is_given_once(engine: Connection) -> None:
    schedules.add(NIGHTLY, ANA)
    other = schedules.add(replace(NIGHTLY, name="Other"), ANA)
    for act in (lambda: schedules.add(NIGHTLY, ANA), lambda: schedules.save(other, NIGHTLY, ANA)):
        with pytest.raises(ScheduleRefused, match="a schedule named Nightly already"):
            act()
    assert len(audited()) == 2


def test_concurrent_change_is_not_overwritten(engine: Connection) -> None:
    schedule = schedules.add(NIGHTLY, ANA)
    schedules.pause(schedule, replace(ANA, version=1))
    with pytest.raises(ChangedMeanwhile, match="ana changed Nightly"):
        schedules.save(schedule, NIGHTLY, Act("ivo", "command", version=1))
    with pytest.raises(schedules.NoSuchSchedule):
        schedules.pause(schedule + 1, ANA)
    assert len(audited()) == 2


def test_where_the_message_cannot_be_sent_nothing_is_audited(engine: Connection) -> None:
    from pgqueue_admin.transport import Endpoint

    Endpoint("Billing", engine.raw.info.dsn + f" password={engine.raw.info.password}").create_queues()
    billing = replace(NIGHTLY, to="Billing", message_type="Shop.Bill")
    schedule = schedules.add(billing, ANA)
    engine.run('drop table "Billing"')
    with pytest.raises(DatabaseError):
        schedules.run_now(schedule, ANA)
    assert [verb for verb, *_ in audited()] == ["create"]
    assert engine.value("select count(*) from messages.schedule_run where outcome is not null") == 0


def test_nothing_is_sent_where_code_of_others_would_run(engine: Connection) -> None:
    """Neither schedules saved now nor those saved before the code was attached."""
    from pgqueue_admin.transport import Endpoint

    Endpoint("Billing", engine.raw.info.dsn + f" password={engine.raw.info.password}").create_queues()
    billing = replace(NIGHTLY, to="Billing", message_type="Shop.Bill")
    schedule = schedules.add(billing, ANA)
    engine.run("""
        do $$ begin create role neighbour; exception when duplicate_object then null; end $$;
        create function public.spy() returns trigger language plpgsql as $$ begin return new; end $$;
        alter function public.spy() owner to neighbour;
        create trigger spies before insert on public."Billing" for each row execute function public.spy();
    """)
    with pytest.raises(ActRefused, match="trigger spies of role neighbour"):
        schedules.run_now(schedule, ANA)
    with pytest.raises(ScheduleRefused, match="trigger spies of role neighbour") as refused:
        schedules.add(replace(billing, name="Hourly"), ANA)
    assert refused.value.field == "to"
    assert [verb for verb, *_ in audited()] == ["create"]
    assert engine.value('select count(*) from "Billing"') == 0


def test_without_the_tables_it_says_what_makes_them(engine: Connection) -> None:
    from tests.older_schema import set_back

    set_back(engine, 4)
    with pytest.raises(ActRefused, match=r"manage\.py engine_schema"):
        schedules.add(NIGHTLY, ANA)
    assert postgresql().schedules.is_installed(engine) is False
