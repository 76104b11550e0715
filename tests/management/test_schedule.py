"""`manage.py schedule`: the acts of the pages, from a shell."""

import io
import json
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command

from pgqueue_admin.config.celery import app
from pgqueue_admin.dialects import Connection
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.transport import Endpoint

Connect = Callable[..., Connection]
NIGHTLY = ("add", "Nightly", "30 2 * * *", "--zone", "Europe/Vienna", "--message", '{"kind": "sweep"}', "--as", "ana")


def run(*argv: str) -> list[str]:
    out = io.StringIO()
    call_command("schedule", *argv, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture
def engine(console_database: str, connect: Connect) -> Connection:
    return connect(console_database)


def test_add_says_when_it_runs_and_what_summer_time_does(engine: Connection) -> None:
    said = run(*NIGHTLY)
    assert said[0] == "Nightly is saved. At 02:30 every day, in Europe/Vienna."
    assert len([line for line in said if line.startswith("next ")]) == 5
    assert any("does not exist: it runs at 03:00" in line for line in said)
    assert list(AuditEntry.objects.values_list("verb", "who", "origin")) == [("create", "ana", "command")]


def test_a_life(engine: Connection, console_database: str) -> None:
    Endpoint("Billing", console_database).create_queues()
    run(
        "add", "Bills", "0 6 1 * *", "--to", "Billing", "--type", "Shop.Bill", "--message", "{}", "--missed", "catch-up"
    )
    assert run("pause", "Bills") == ["Bills is paused."]
    assert "paused by" in run("list")[0]
    assert run("resume", "Bills") == ["Bills is resumed."]
    assert run("run", "Bills") == ["Bills is sent once."]
    (row,) = json.loads("\n".join(run("list", "--json")))
    assert (row["name"], row["to"], row["ran_as"], row["missed"]) == (
        "Bills",
        '"public"."Billing"',
        "by_hand",
        "catch_up",
    )
    shown = "\n".join(run("show", "Bills"))
    assert 'Sends Shop.Bill to "public"."Billing": {}' in shown
    assert ": by_hand" in shown
    assert run("remove", "Bills") == ["Bills is removed."]
    assert run("list") == ["0 schedules."]
    assert engine.value('select count(*) from "Billing"') == 1


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("add", "x", "0 0 30 2 *", "--message", "1"), "never comes"),
        (("add", "x", "0 0 * * *", "--zone", "Mars", "--message", "1"), "no time zone"),
        (("add", "x", "0 0 * *", "--message", "1"), "has 4 fields"),
        (("pause", "nobody"), "There is no schedule nobody"),
    ],
)
def test_refusals_say_why(engine: Connection, argv: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        run(*argv)


def test_beat_and_another_clock_send_what_is_due_once(engine: Connection) -> None:
    run(*NIGHTLY)
    engine.run("update messages.schedule_run set due_at = now() - interval '10 seconds' where due_at ="
               " (select min(due_at) from messages.schedule_run)")  # fmt: skip
    assert tasks.run_schedules() == [1, 0, 0]
    assert run("due") == ["0 sent, 0 passed over, 0 schedules failed."]
    entry = app.conf.beat_schedule["send what is due"]
    assert (entry["task"], entry["schedule"]) == ("pgqueue_admin.housekeeping.tasks.run_schedules", 60)
    assert engine.value("select who from messages.schedule_look") == "manage.py schedule due"
