"""`manage.py dead`: plans a staged retry, follows it, and controls a running one."""

import time
from argparse import ArgumentParser
from dataclasses import replace
from typing import Any

from pgqueue_admin.formatting import durations
from pgqueue_admin.management import dead_messages
from pgqueue_admin.models import Operation, RetryPlan
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, plans, runner, staged_controls, staged_retry
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.operations.plans import Planned

VERB, ACTS = "plan", ("show", "pause", "resume", "rate", "cancel")
_MOVES = runner.UNFINISHED  # no decision is awaited, and messages are left to send
_OPTIONS = {
    "try_first": ("--try", int, "K", "Send so many first, and watch them. 0: no trial."),
    "watch_seconds": ("--watch", str, "LENGTH", "How long, such as 60s or 2min."),
    "then_some": ("--then", int, "N", "Then so many at the first rate."),
    "some_rate": ("--then-rate", float, "N", "Messages a second of these."),
    "rest_rate": ("--rate", float, "N", "Messages a second of the rest."),
    "hold_above": ("--hold-above", int, "N", "Holds while a target has more ready. 0: never."),
    "stop_dead": ("--stop-at", int, "M", "Stops by itself when so many die again. 0: never."),
    "stop_of": ("--stop-of", int, "K", "Among so many sent one after another."),
    "give_up_seconds": ("--give-up", str, "LENGTH", "How long after the last it is followed."),
}
_LENGTHS = ("watch_seconds", "give_up_seconds")


def add_arguments(retry: ArgumentParser) -> None:
    retry.add_argument("--plan", choices=("careful", "flat"), help="In stages: a few first, or all at 20/s.")
    retry.add_argument("--now", action="store_true", help="Of a plan: start without a receiver, too.")
    for name, (option, kind, metavar, help) in _OPTIONS.items():
        retry.add_argument(option, dest=name, type=kind, metavar=metavar, help=f"Of a plan: {help}")
    retry.add_argument("--detach", action="store_true", help="Of a plan: end here once it is started.")


def add_verb(parser: ArgumentParser) -> None:
    parser.add_argument("act", choices=ACTS, help="What to do with a staged retry that was started.")
    parser.add_argument("operation", type=int, help="The retry's number.")
    parser.add_argument("rate", nargs="?", type=float, help="Of rate: messages a second, from the next chunk on.")


def planned(operation: Operation, options: dict[str, Any]) -> Planned | None:
    """Return the plan; None: as fast as possible. Raises OperationRefused."""
    given = {name: options[name] for name in _OPTIONS if options.get(name) is not None}
    if not options.get("plan") and not given and not options.get("now"):
        return None
    plan = plans.flat(operation) if options.get("plan") == "flat" else plans.careful(operation)
    given |= {name: _seconds(name, given[name]) for name in _LENGTHS if name in given}
    if given.get("hold_above") == 0:
        given["hold_above"] = None
    found = replace(plan, **given, waits=not options["now"])
    if fault := found.fault():
        raise OperationRefused(fault)
    return found


def _seconds(name: str, text: str) -> int:
    seconds = durations.parse(text, unit="s")
    if seconds is None:
        raise OperationRefused(
            f"{_OPTIONS[name][0]} {text}: that is no duration. Try 60s, 2min, 1h. Nothing has started."
        )
    return round(seconds)


def follow(out: Any, operation: Operation) -> None:
    """Run steps, as housekeeping may too, until all is sent or a person must decide. Print each new sentence once."""
    told = ""
    while operation.state in _MOVES:
        wait = staged_retry.step(operation.pk)
        operation.refresh_from_db()
        says = RetryPlan.objects.get(pk=operation.pk).says
        if says and says != told:
            out.write(says)
        told = says
        if operation.state in _MOVES:
            time.sleep(min(wait, staged_retry.LOOK_EVERY))


def do(out: Any, act: str, number: int, rate: float | None, who: str, reason: str, as_json: bool) -> None:
    """Raises OperationRefused."""
    if not RetryPlan.objects.filter(pk=number).exists():
        raise OperationRefused(f"Nothing was changed: operation {number} does not go in stages.")
    if (act == "rate") != (rate is not None):
        raise OperationRefused("Nothing was changed: dead plan rate NUMBER RATE takes messages a second, as 20.")
    if act == "pause":
        staged_controls.pause(number, who)
    elif act == "resume":
        staged_controls.go_on(number, who, reason)
    elif act == "rate":
        assert rate is not None
        staged_controls.change_rate(number, who, rate)
    elif act == "cancel":
        lifecycle.cancel(number, who)
    show(out, number, as_json)


def show(out: Any, number: int, as_json: bool) -> None:
    plan = RetryPlan.objects.select_related("operation").get(pk=number)
    operation, counts = plan.operation, _counts(plan)
    sent = sum(count for word, count in counts.items() if word not in _NOT_SENT)  # the row is updated one look later
    if as_json:
        figures = {"state": operation.state, "count": operation.count, "sent": sent}
        now = {"dead_now": plan.dead_now, "ready_now": plan.ready_now, "says": plan.says}
        return dead_messages.dump(
            out, {"operation": number, **figures, "plan": plans.of(plan).as_dict(), **now, "now": counts}
        )
    out.write(f"Operation {number} {operation.state}: {sent:,} of {operation.count:,} sent.")
    out.write(f"Plan: {plans.of(plan).said}; {plans.of(plan).limits_said}.")
    if plan.says:
        out.write(plan.says)
    for word, count in counts.items():
        out.write(f"{count:>8}  {word}")


_CLASSES = {
    "succeeded": "succeeded", "picked": "picked up", "sent": "sent, waiting", "same": "dead again, same cause",
    "other": "dead again, another cause", "dead": "dead again", "unknown": "not known", "skipped": "skipped",
    "failed": "failed and unchanged", "open": "not sent",
}  # fmt: skip
_NOT_SENT = {_CLASSES[each] for each in ("skipped", "failed", "open")}


def _counts(plan: RetryPlan) -> dict[str, int]:
    """Count outcomes now, by class."""
    found: dict[str, int] = {}
    with queue_database().read_session() as connection:
        is_over = plan.operation.state not in staged_retry.FOLLOWED
        for row in staged_retry.tally(connection, plan, is_over):
            found[row.what] = found.get(row.what, 0) + row.count
    return {word: found[name] for name, word in _CLASSES.items() if found.get(name)}
