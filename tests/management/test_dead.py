"""`manage.py dead`: selection, confirmation, execution, output and exit codes (C4, docs/reference/cli.md)."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pgqueue_admin.dialects import Connection
from pgqueue_admin.management.commands import dead as command
from pgqueue_admin.models import AuditEntry, Operation, Queue, RetryPlan, RetryRule
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import staged_retry
from tests.archived_messages import BILLING, REFUSED, archived, dead, number_in

LIMITS = ("0", "-1", "1000001", "99999999999999999999")
REFUSED_ONES = ("--exception", "RefusedException")


@pytest.fixture(autouse=True)
def archive(archived_console: str, connect: Callable[[str], Connection]) -> Connection:
    """The archive, in a clone of its own."""
    return connect(archived_console)


def run(*argv: str, stderr: io.StringIO | None = None) -> tuple[int, str]:
    """Exit code and output, as in a shell."""
    out = io.StringIO()
    try:
        call_command("dead", *argv, stdout=out, stderr=stderr or io.StringIO())
    except CommandError as error:
        return error.returncode, str(error)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_list() -> None:
    code, said = run("list", *REFUSED_ONES, "--limit", "3")
    lines = said.splitlines()
    assert (code, len(lines)) == (0, 4)
    assert all(BILLING in line and REFUSED in line for line in lines[:3])
    assert lines[3] == "3 messages, and more (--limit)."
    code, said = run("list", "--queue", "Newsletter", "--json")
    found = json.loads(said)
    assert (code, len(found["messages"]), found["more"]) == (0, 10, False)
    assert found["messages"][0]["why_no_retry"].startswith("Its queue is gone")
    assert (
        json.loads(run("list", "--state", "all", "--kind", "control", "--json")[1])["messages"][5]["state"]
        == "succeeded"
    )


def test_search_option_takes_the_archive_search_grammar(archive: Connection) -> None:
    """It covers what the filters lack: exclusion, alternatives, ranges and the final state."""
    q = "(queue:Billing OR queue:Newsletter) -error:RefusedException size:>1"
    found = json.loads(run("list", "--search", q, "--json", "--limit", "1000")[1])["messages"]
    assert {each["queue"] for each in found} == {BILLING, '"public"."Newsletter"'}
    assert REFUSED not in {each["exception_type"] for each in found}
    code, said = run("discard", "--search", f"{q} queue:Newsletter", "--yes", "--json")
    assert (code, json.loads(said)["done"]) == (0, 10)
    assert len(json.loads(run("list", "--search", "state:discarded", "--json")[1])["messages"]) == 10


@pytest.mark.parametrize("search", [" ", "state:dead"])
def test_a_search_that_leaves_none_out_is_no_choice(search: str) -> None:
    code, said = run("discard", "--search", search, "--yes")
    assert (code, said) == (command.WRONG, "Say which messages to discard: ids, filters, or --all. Nothing was done.")


def test_a_bare_name_with_a_dot_is_the_table_that_is_called_so(archive: Connection) -> None:
    """Demo.Billing is a table in public; there is no schema Demo. If two schemas have such a table, it is ambiguous."""
    known = {"to": '"public"."Demo.Billing"', "from": BILLING}
    archive.run("update messages.message_archive set queue = %(to)s where queue = %(from)s", known)
    Queue.objects.create(schema="public", table="Demo.Billing")
    code, said = run("list", "--queue", "Demo.Billing", "--limit", "1")
    assert (code, said.splitlines()[-1]) == (0, "1 message, and more (--limit).")
    Queue.objects.create(schema="other", table="Demo.Billing")
    code, said = run("list", "--queue", "Demo.Billing")
    assert (code, said) == (command.WRONG, "Demo.Billing is in other and public: write other.Demo.Billing.")


def test_retry_a_frozen_set() -> None:
    before = number_in(BILLING)
    code, said = run("retry", *REFUSED_ONES, "--yes", "--json", "--as", "ana", "--reason", "gateway is back")
    result = json.loads(said)
    assert (code, result["state"], result["done"], result["queues"], result["not_done"]) == (
        0,
        "done",
        88,
        {BILLING: 88},
        [],
    )
    assert number_in(BILLING) == before + 88
    entry = AuditEntry.objects.get(operation_id=result["operation"])
    assert (entry.who, entry.origin, entry.count, entry.reason) == ("ana", "command", 88, "gateway is back")


def test_messages_not_retried_are_listed_with_exit_code_1() -> None:
    one, gone = dead(exception=REFUSED)[0], dead(queue='"public"."Newsletter"')[0]
    run("discard", str(one.id), "--yes", "--as", "bob")
    code, said = run("retry", str(one.id), str(gone.id), "--yes", "--json")
    not_done = {each["archive_id"]: each for each in json.loads(said)["not_done"]}
    assert code == command.NOT_ALL
    assert (not_done[one.id]["outcome"], not_done[one.id]["previous_actor"]) == ("skipped", "bob")
    assert not_done[gone.id]["outcome"] == "failed"
    assert "by bob at" in run("retry", str(one.id), "--yes")[1]


def test_discard_and_restore() -> None:
    assert run("discard", "--queue", BILLING, "--yes")[0] == 0
    assert len(dead(500, state="discarded")) == 367
    assert run("restore", "--all", "--yes")[0] == 0
    assert len(dead(500, queue=BILLING)) == 367


def test_without_a_yes_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))  # a pipe is no terminal: its answer does not count
    code, said = run("retry", *REFUSED_ONES)
    assert (code, said) == (command.NOT_CONFIRMED, "Nothing was done. Confirm with y, or give --yes.")
    assert Operation.objects.get().state == Operation.State.CANCELLED
    assert len(dead(100, exception=REFUSED)) == 88


class Typed(io.StringIO):
    """Input typed at a terminal, line by line."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        ("n\n", command.NOT_CONFIRMED, "Nothing was done."),
        ("y\n\n", command.NOT_CONFIRMED, "Above 20 messages a reason is asked for. Nothing has started."),
        ("y\n", command.NOT_CONFIRMED, "Above 20 messages a reason is asked for. Nothing has started."),
        ("y\ngateway is back\n", 0, "88 of 88 done"),
    ],
)
def test_at_a_terminal_it_asks_as_the_pages_do(
    monkeypatch: pytest.MonkeyPatch, typed: str, code: int, said: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Typed(typed))
    found = run("retry", *REFUSED_ONES)
    assert (found[0], said in found[1]) == (code, True)
    assert Operation.objects.get().reason == ("gateway is back" if code == 0 else "")


@pytest.mark.parametrize(("typed", "code"), [("y\nold\n", command.NOT_CONFIRMED), ("367\nold\n", 0)])
def test_a_large_discard_asks_for_its_count(monkeypatch: pytest.MonkeyPatch, typed: str, code: int) -> None:
    monkeypatch.setattr(sys, "stdin", Typed(typed))
    asked = io.StringIO()
    assert run("discard", "--queue", BILLING, stderr=asked)[0] == code
    assert len(dead(500, state="discarded")) == (367 if code == 0 else 0)
    for each in ("Discard 367 messages in ", "Restore brings it back at any time.", "Type the count, 367, to go on: "):
        assert each in asked.getvalue()


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["retry", "--yes"], command.WRONG, "Say which messages to retry: ids, filters, or --all. Nothing was done."),
        (["retry", "5", "--queue", "Billing", "--yes"], command.WRONG, "Give ids or filters, not both."),
        (["retry", "--queue", '""', "--yes"], command.WRONG, "names no queue table"),
        (["retry", "--search", "age:>1hh", "--yes"], command.WRONG, "age:>1hh: 1hh is no duration. Try 1h, 90m, 2d."),
        (["list", "--search", "e", "--type", "Ping"], command.WRONG, "Give --search or other filters, not both."),
        (["discard", "--search", "queue:Nowhere", "--yes"], command.NOTHING, "No message matches"),
        (
            ["discard", "--search", "state:retried queue:Billing", "--yes"],
            command.WRONG,
            "is for dead messages, these are retried",
        ),
        (["discard", "--queue", "Nowhere", "--yes"], command.NOTHING, "No message matches"),
        (["retry", "999999", "--yes"], command.NOTHING, "No message matches"),
        *((["list", "--limit", each], command.WRONG, "--limit takes a number from 1 to 1,000,000") for each in LIMITS),
        (["list", "--type", "caf\udce9"], command.WRONG, "'caf\\udce9' is no text: its bytes are not UTF-8."),
        (["discard", "--word", "a", "--word", "\udcff", "--yes"], command.WRONG, "is no text"),
        (["discard", "1", "--yes", "--reason", "\udcff"], command.WRONG, "is no text"),
    ],
)
def test_exit_codes(argv: list[str], code: int, said: str) -> None:
    assert run(*argv)[0] == code
    assert said in run(*argv)[1]


def test_without_the_engines_tables_it_names_the_command() -> None:
    with queue_database().write_session() as connection:
        connection.run("drop schema messages cascade")
    code, said = run("list")
    assert code == command.NO_DATABASE
    assert "manage.py engine_schema" in said


def test_every_exit_code_is_documented() -> None:
    table = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text()
    codes = {int(code) for code in re.findall(r"^\| (\d) \|", table, re.MULTILINE)}
    named: list[Any] = [command.NOT_ALL, command.WRONG, command.NOTHING, command.NOT_CONFIRMED, command.NO_DATABASE]
    assert codes == {0, *named}


def test_a_message_in_the_log_of_ids_is_the_one_shown() -> None:
    message = dead(exception=REFUSED)[0]
    assert run("list", "--message-id", message.message_id)[1].split()[0] == str(message.id)
    assert archived(message.id).state == "dead"


def test_call_back_takes_back_a_retrys_messages() -> None:
    before = number_in(BILLING)
    run("retry", *REFUSED_ONES, "--yes")
    number = str(Operation.objects.get().pk)
    assert run("call-back", "999")[0] == command.WRONG
    code, said = run("call-back", number, "--yes", "--json", "--as", "ana", "--reason", "too early")
    result = json.loads(said)
    assert (code, result["kind"], result["done"], result["skipped"]) == (0, "call back", 88, 0)
    assert number_in(BILLING) == before
    assert run("call-back", number, "--yes")[0] == command.NOTHING


def test_a_queue_is_purged_into_the_bin() -> None:
    Queue.objects.create(schema="public", table="Billing", kind="input", acts_allowed=True)
    before = number_in(BILLING)
    code, said = run("purge", BILLING, "--yes", "--json", "--as", "ana", "--reason", "flood")
    result = json.loads(said)
    assert (code, result["kind"], result["done"], number_in(BILLING)) == (0, "purge", before, 0)
    assert run("purge", BILLING, "--yes")[0] == command.NOTHING
    assert run("purge", "Nothing", "--yes")[0] == command.WRONG


def test_a_retry_by_rules(archive: Connection) -> None:
    archive.run('create table "Billing.V2" (like "Billing" including all)')
    Queue.objects.create(schema="public", table="Billing.V2", kind="input")
    RetryRule.objects.create(queue=BILLING, target='"public"."Billing.V2"', who="ana")
    assert run("retry", *REFUSED_ONES, "--yes", "--by-rules")[0] == 0
    assert number_in('"public"."Billing.V2"') == 88


def test_a_retry_changes_one_header_of_each() -> None:
    code, said = run("retry", *REFUSED_ONES, "--yes", "--json", "--set-header", "Tenant", "blue", "--or-add")
    assert (code, json.loads(said)["done"]) == (0, 88)
    with queue_database().read_session() as connection:
        asked = f"select count(*) from {BILLING} where headers::jsonb ->> 'Tenant' = 'blue'"
        assert connection.value(asked) == 88


def test_a_retry_says_how_many_change_before_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    code, _ = run("retry", *REFUSED_ONES, "--set-header", "Tenant", "blue", stderr=asked)
    assert code == command.NOT_CONFIRMED
    assert "sets header Tenant to “blue”, where there is one" in asked.getvalue()
    assert re.search(r"^ +0  change$", asked.getvalue(), re.M)
    assert re.search(r"^ +88  have no such header: they stay dead$", asked.getvalue(), re.M)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["--set-header", "NServiceBus.MessageId", "x"], "read by programs"),
        (["--or-add"], "say --set-header"),
        (["--drop-field", "a", "--or-add"], "exclude each other"),
        (["--set-field", "a..b", "x"], "no path"),
        (["--set-field", "a", "x", "--as-json"], "no JSON value"),
    ],
)
def test_an_edit_that_is_none_does_nothing(given: list[str], why: str) -> None:
    code, said = run("retry", *REFUSED_ONES, "--yes", *given)
    assert code == command.WRONG
    assert why in said
    assert not Operation.objects.exists()


NOBODY = ("--now", "--hold-above", "0")


def test_a_retry_goes_in_stages_and_stops_after_its_trial() -> None:
    """No receiver runs, so the trial's messages stay in the queue and an operator decides."""
    asked = io.StringIO()
    staged = ("--plan", "careful", "--try", "3", "--watch", "0s", "--detach", *NOBODY)
    code, said = run("retry", *REFUSED_ONES, "--yes", "--json", *staged, stderr=asked)
    result = json.loads(said)
    assert (code, result["state"], result["count"], result["sent"]) == (0, "waiting", 88, 0)
    assert (result["plan"]["try_first"], result["plan"]["watch_seconds"], result["plan"]["waits"]) == (3, 0, False)
    number = str(result["operation"])
    assert AuditEntry.objects.get(verb="retry").after["plan"]["try_first"] == 3  # type: ignore[index]
    staged_retry.step(int(number))
    shown = run("plan", "show", number)[1]
    assert "3 of 88 sent." in shown
    assert re.search(r"^ +3  sent, waiting$", shown, re.M)
    assert "try 3, watch" in shown
    assert "paused" in run("plan", "pause", number, "--as", "ana")[1]
    assert RetryPlan.objects.get().decided_by == "ana"
    assert run("plan", "pause", number)[0] == command.WRONG
    assert "the rest at 7/s" in run("plan", "rate", number, "7")[1]
    assert json.loads(run("plan", "resume", number, "--json")[1])["state"] == "running"
    cancelled = json.loads(run("plan", "cancel", number, "--json")[1])
    assert (cancelled["state"], cancelled["now"]) == ("following", {"sent, waiting": 3, "not sent": 85})
    assert len(dead(100, exception=REFUSED)) == 85


def test_a_retry_in_stages_is_followed_until_all_is_sent() -> None:
    before, told = number_in(BILLING), io.StringIO()
    staged = ("--plan", "flat", "--rate", "500", "--stop-at", "0", *NOBODY)
    code, said = run("retry", *REFUSED_ONES, "--yes", *staged, stderr=told)
    assert code == 0
    assert "88 of 88 sent" in said
    assert number_in(BILLING) == before + 88


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["retry", *REFUSED_ONES, "--yes", "--watch", "soon"], "that is no duration"),
        (["retry", *REFUSED_ONES, "--yes", "--stop-at", "9", "--stop-of", "3"], "cannot stop at 9"),
        (["retry", *REFUSED_ONES, "--yes", "--rate", "0"], "you gave 0"),
        (["plan", "show", "4711"], "does not go in stages"),
        (["plan", "rate", "4711"], "does not go in stages"),
    ],
)
def test_a_plan_that_is_none_does_nothing(given: list[str], why: str) -> None:
    code, said = run(*given)
    assert code == command.WRONG
    assert why in said
    assert set(Operation.objects.values_list("state", flat=True)) <= {"cancelled"}
    assert not RetryPlan.objects.exists()
