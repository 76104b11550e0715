"""manage.py schedule: schedules from a shell, through the same service as the pages."""

import json
from typing import Any

import django.db
from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import times
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.lease.schedules import clock_changes, cron_timetable, runner
from pgqueue_admin.management.act_command import caller
from pgqueue_admin.management.database_errors import describe
from pgqueue_admin.models import outage
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import schedules
from pgqueue_admin.services.endpoint_change import ActRefused

ACTS = {
    "pause": ("Sends nothing until resumed.", "{} is paused."),
    "resume": ("Continues; missed times are not sent.", "{} is resumed."),
    "run": ("Sends it once now; the plan stays.", "{} is sent once."),
    "remove": ("Removes the schedule, not its sent messages.", "{} is removed."),
}


class Command(BaseCommand):
    help = "Lists and changes schedules, which send messages by the clock into any queue."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        self._add_add(verbs.add_parser("add", help="Adds a schedule. One that would never send is refused."))
        listing = verbs.add_parser("list", help="All, with next due time and last outcome.")
        listing.add_argument("--json", action="store_true", help="One JSON document, for programs.")
        verbs.add_parser("show", help="One: its message, the next five due times, the last five, clock changes.")
        verbs.add_parser("due", help="Sends due messages once, as supervisor and beat do each minute.")
        for verb, (said, _) in ACTS.items():
            verbs.add_parser(verb, help=said)
        for verb in ("show", *ACTS):
            verbs.choices[verb].add_argument("name", help="The schedule's name.")
        for verb in ("add", *ACTS):
            verbs.choices[verb].add_argument("--reason", default="", help="Why; kept in the audit.")
            verbs.choices[verb].add_argument(
                "--as", dest="who", default=caller(), help="Whose name is kept. Default: yours."
            )

    def _add_add(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="Any; of one schedule only.")
        parser.add_argument(
            "expression",
            help="Cron: minute, hour, day, month, weekday, as '30 2 * * *'. Or a date, as '2026-11-28 06:00'.",
        )
        parser.add_argument("--zone", default="UTC", help="Time zone, as Europe/Vienna. Default: UTC.")
        parser.add_argument(
            "--to",
            default=schedules.LEASE,
            help='A queue, as Billing or \'"shop"."Billing"\'. Default: the lease queue.',
        )
        parser.add_argument("--type", default="", help="Of a transport message, as Shop.PlaceOrder.")
        parser.add_argument(
            "--message",
            required=True,
            help="JSON. {{ due }} in a text becomes the planned time, {{ due | date }} its day.",
        )
        parser.add_argument(
            "--missed", choices=["skip", "catch-up"], default="skip",
            help="Missed runs: skip them, or send the latest once. Default: skip.",
        )  # fmt: skip

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            getattr(self, f"_{verb}", self._act)(verb=verb, **options)
        except (ScheduleRefused, ActRefused, DatabaseError) as error:
            raise CommandError(describe(error)) from error
        except django.db.Error as error:  # the console's own database
            raise CommandError(f"The console's database {outage.describe(error)}. {error}".strip()) from error

    def _add(self, *, name: str, expression: str, who: str, reason: str, **options: Any) -> None:
        about = {"zone": options["zone"], "missed": options["missed"].replace("-", "_")}
        draft = schedules.ScheduleDraft(name, options["to"], options["type"], options["message"], expression, **about)
        schedules.add(draft, schedules.Act(who, "command", reason))
        found = cron_timetable.read(expression, options["zone"])
        self.stdout.write(f"{name} is saved. {found.words()}, in {found.zone}.")
        with queue_database().read_session() as session:
            self._print_next(found, schedules.store_of(session).now(session))

    def _list(self, **options: Any) -> None:
        with queue_database().read_session() as session:
            rows = schedules.store_of(session).listed(session)
        if options["json"]:
            return self.stdout.write(json.dumps([_as_json(row) for row in rows], indent=2))
        for row in rows:
            self.stdout.write(
                f"{row.name}\t{row.expression} {row.zone}\tto {schedules.to_of(row)}\t{_next(row)}\t{_last(row)}"
            )
        return self.stdout.write(f"{pluralize(len(rows), 'schedule')}.")

    def _show(self, *, name: str, **options: Any) -> None:
        with queue_database().read_session() as session:
            store = schedules.store_of(session)
            row = store.listed(session, self._id(session, name))[0]
            draft, past, now = (
                schedules.draft_of(session, store, row),
                store.past(session, row.id),
                store.now(session),
            )
        found = cron_timetable.read(row.expression, row.zone)
        self.stdout.write(f"{row.name}: {found.words()}, in {row.zone} ({row.expression}). Missed runs: {row.missed}.")
        self.stdout.write(f"Sends {draft.message_type} to {draft.to}: {draft.message}".replace("  ", " "))
        self.stdout.write(f"{_next(row)}; {_last(row)}.")
        if row.error:
            self.stdout.write(
                f"Not sent since {times.sentence(row.error_at, cron_timetable.tz_of('UTC'))}: {row.error}"
            )
        self._print_next(found, now)
        for each in past:
            self.stdout.write(
                f"was due {each.local_due:%Y-%m-%d %H:%M}: {each.outcome} {each.result or each.ended_as or ''}".rstrip()
            )

    def _due(self, **options: Any) -> None:
        database = queue_database()
        with database.write_session() as session:
            schedules.store_of(session)
            done = runner.run(session, database.dialect, "manage.py schedule due")
        self.stdout.write(f"{done.sent} sent, {done.passed_over} passed over, {done.failed} schedules failed.")

    def _act(self, *, verb: str, name: str, who: str, reason: str, **options: Any) -> None:
        with queue_database().read_session() as session:
            schedule = self._id(session, name)
        act = {
            "pause": schedules.pause,
            "resume": schedules.resume,
            "run": schedules.run_now,
            "remove": schedules.remove,
        }
        act[verb](schedule, schedules.Act(who, "command", reason))
        self.stdout.write(ACTS[verb][1].format(name))

    def _id(self, session: Any, name: str) -> int:
        found = schedules.store_of(session).id_of(session, name)
        if found is None:
            raise schedules.NoSuchSchedule(name)
        return found

    def _print_next(self, found: cron_timetable.Timetable, now: Any) -> None:
        for due in cron_timetable.next_times(found, now):
            self.stdout.write(f"next {due.local:%Y-%m-%d %H:%M} ({due.at:%Y-%m-%d %H:%M} UTC)")
        for sentence in clock_changes.sentences(found, now):
            self.stdout.write(sentence)


def _next(row: Any) -> str:
    if row.paused_at:
        return f"paused by {row.paused_by}"
    return f"next {row.next_local:%Y-%m-%d %H:%M}" if row.next_local else "no due time within 31 days"


def _last(row: Any) -> str:
    if row.ran_at is None:
        return "not sent yet"
    became = "waits" if row.waits else row.result or row.ended_as or "taken, or waits"
    return f"last {row.ran_at:%Y-%m-%d %H:%M} UTC: {became}"


def _as_json(row: Any) -> dict[str, Any]:
    shown = {**row._asdict(), "to": schedules.to_of(row)}
    return {name: value if isinstance(value, str | int | None) else str(value) for name, value in shown.items()}
