"""Acts on schedules: each is audited, and validated before anything is written.

The caller checks the right first (``services.permissions``). ``person`` is a Django user or a name, ``origin`` one of
console, admin, command. The audit is in another database: a failed act has no entry.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import QuerySet

from pgqueue_admin.archive.held_row import others_code
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.dialects.errors import AddressUnreadable, AlreadyExists
from pgqueue_admin.dialects.schedule_store import DueTime, Missed, Plan, ScheduledMessage, ScheduleStore
from pgqueue_admin.dialects.visible_queues import LEASE_NAME
from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.lease.schedules import content, cron_timetable, due_times
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import queue_access
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.endpoint_change import ActRefused, ChangedMeanwhile
from pgqueue_admin.services.operations.targets import judge
from pgqueue_admin.services.permissions import Refusal, name_of

UNSEEN = "unseen"  # outcome of a message that died in a queue that the person may not see
LEASE = "lease queue"  # as a target; a transport queue is named by its address
MOST_NAME = 100
MOST_SEARCHED = 200  # audit entries that are searched for visible ones
MOST_KEPT = 2_000  # characters of a message in the audit


class NoSuchSchedule(ActRefused):
    """No schedule has this name or number."""

    def __init__(self, which: object):
        super().__init__(f"Nothing was changed. There is no schedule {which}.")


class SchedulesMissing(ActRefused):
    """The tables of schedules are missing, or of an older version."""

    def __init__(self) -> None:
        super().__init__("There are no tables for schedules here: run manage.py engine_schema.")


@dataclass(frozen=True)
class ScheduleDraft:
    """A schedule as typed."""

    name: str
    to: str
    message_type: str
    message: str
    expression: str
    zone: str
    missed: Missed


@dataclass(frozen=True)
class Act:
    """Who does it, from where, why, and which version of the schedule they saw."""

    person: Any
    origin: str
    reason: str = ""
    version: int | None = None


def add(draft: ScheduleDraft, act: Act) -> int:
    """Add a schedule; return its id. Raises ScheduleRefused, ActRefused, database errors: nothing was saved then."""
    with _writing() as (session, store):
        _refuse_probing(draft)
        message, plan = checked(session, store, draft)
        about = _about("create", draft.name, act)
        with audited(**about, after=facts(draft)) as entry, _one_of_a_name(draft):
            number = store.add(session, draft.name.strip(), message, plan, name_of(act.person))
            entry.done = 1
        return number


def save(schedule: int, draft: ScheduleDraft, act: Act) -> None:
    """Change a schedule. Raises as ``add``."""
    with _act("set", schedule, act, after=facts(draft)) as (session, store, entry):
        _refuse_probing(draft, entry.subject)
        message, plan = checked(session, store, draft)
        entry.before = facts(draft_of(session, store, _row(session, store, schedule)))
        entry.subject = draft.name.strip()
        with _one_of_a_name(draft):
            store.change(session, schedule, draft.name.strip(), message, plan)


def pause(schedule: int, act: Act) -> None:
    with _act("pause", schedule, act) as (session, store, _):
        store.pause(session, schedule, name_of(act.person))


def resume(schedule: int, act: Act) -> None:
    """Resume; times missed meanwhile are not sent."""
    with _act("resume", schedule, act) as (session, store, _):
        store.resume(session, schedule)


def remove(schedule: int, act: Act) -> None:
    """Remove the schedule; messages already sent stay."""
    with _act("remove", schedule, act) as (session, store, _):
        store.remove(session, schedule)


def run_now(schedule: int, act: Act) -> str:
    """Send one extra message and return its id; the plan stays unchanged."""
    with _act("run now", schedule, act) as (session, store, _):
        row = _row(session, store, schedule)
        if row.kind != "lease" and (why := _others_code(session, Address(row.queue_schema, row.queue_table))):
            raise ActRefused(f"Nothing was sent. {why}")
        now = store.now(session)
        due = DueTime(now, now.astimezone(cron_timetable.tz_of(row.zone)).replace(tzinfo=None))
        return store.run_by_hand(session, schedule, due, name_of(act.person)) or ""


def checked(session: Connection, store: ScheduleStore, draft: ScheduleDraft) -> tuple[ScheduledMessage, Plan]:
    """Return what would be saved. Raises ScheduleRefused."""
    if not 0 < len(draft.name.strip()) <= MOST_NAME or not draft.name.isprintable():
        raise ScheduleRefused("name", f"A schedule needs a name of at most {MOST_NAME} printable letters.")
    found = cron_timetable.read_to_come(draft.expression, draft.zone, now := store.now(session))
    return _message(session, draft), due_times.plan(found, draft.missed, now)


def draft_of(session: Connection, store: ScheduleStore, row: Any) -> ScheduleDraft:
    """``row``: a row of ``listed``."""
    sent = store.message(session, row.id)
    return ScheduleDraft(row.name, to_of(row), row.message_type, sent.message, row.expression, row.zone, row.missed)


def listed(session: Connection, store: ScheduleStore, schedule: int | None = None) -> list[Any]:
    """Return schedules that send to queues which the person may see."""
    rows, seen = store.listed(session, schedule), visible_queues.current()
    return rows if seen is None else [_run_as_seen(row) for row in rows if seen.sees_name(name_of_target(row))]


def past(session: Connection, store: ScheduleStore, schedule: int) -> list[Any]:
    """Return the latest runs, except those into queues that the person may not see: the target may have changed."""
    runs = store.past(session, schedule)
    if visible_queues.current() is None:
        return runs
    return [_run_as_seen(run) for run in runs if run.outcome not in _SENT or _is_seen(run)]


def name_of_target(row: Any) -> str:
    """Return the canonical address of the queue that a schedule sends to."""
    return LEASE_NAME if row.kind == "lease" else to_of(row)


def refusal(row: Any) -> Refusal | None:
    """Why scopes forbid this person to act on a schedule."""
    return queue_access.refusal_by_name(name_of_target(row))


def may_be_sent_to(to: str) -> bool:
    """``to``: as in ``ScheduleDraft.to``, canonical."""
    return queue_access.refusal_by_name(LEASE_NAME if to == LEASE else to) is None


_SENT = ("sent", "caught_up", "by_hand")


def _run_as_seen(run: Any) -> Any:
    """Clear a row of ``listed`` or ``past`` of runs into hidden queues, and of deaths in them."""
    if run.row_id is None and run.message_id is None:
        return run
    if not _is_seen(run):
        nothing = ("ran_due", "ran_at", "ran_as", "ran_by", "message_id", "row_id", "archive_id", "ended_as", "result")
        return run._replace(**dict.fromkeys([*nothing, "exception_type", "ended_at", "ended_in"]), waits=False)
    seen = visible_queues.current()
    if run.archive_id is None or seen is None or seen.sees_name(run.ended_in):
        return run
    return run._replace(ended_as=UNSEEN, archive_id=None, result=None, exception_type=None, ended_at=None)


def _is_seen(run: Any) -> bool:
    """Whether the person may see the queue that a run sent to. A lease run has no row id."""
    seen = visible_queues.current()
    if seen is None or run.row_id is None:
        return seen is None or seen.sees_name(LEASE_NAME)
    return seen.sees(Address(run.ran_schema, run.ran_table))


def to_of(row: Any) -> str:
    """Return the target of a row, as in ``ScheduleDraft.to``."""
    if row.kind == "lease":
        return LEASE
    return queue_database().dialect.canonical(Address(row.queue_schema, row.queue_table))


def facts(draft: ScheduleDraft) -> dict[str, Any]:
    """Return the values that the audit stores."""
    return {**asdict(draft), "message": draft.message[:MOST_KEPT]}


def history(name: str) -> QuerySet[AuditEntry]:
    """Audit entries, newest first. People of some queues see the latest ones, back to a removal or a hidden target."""
    found = AuditEntry._base_manager.filter(noun="schedule", subject=name).defer("bodies")
    return (
        found if visible_queues.current() is None else found.filter(pk__in=list(_since_theirs(found[:MOST_SEARCHED])))
    )


def _since_theirs(entries: Iterable[AuditEntry]) -> Iterator[int]:
    for entry in entries:
        before, after = entry.before or {}, entry.after or {}
        if entry.verb == "remove" or not all(may_be_seen(each["to"]) for each in (before, after) if "to" in each):
            return
        yield entry.pk
        if entry.verb == "create" or before.get("name", entry.subject).strip() != entry.subject:
            return


def may_be_seen(to: str) -> bool:
    """``to``: as typed, or canonical."""
    seen = visible_queues.current()
    if seen is None or to.strip() == LEASE:
        return seen is None or seen.sees_name(LEASE_NAME)
    database = queue_database()
    try:
        return seen.sees(database.dialect.parse_address(to.strip(), database.default_schema))
    except AddressUnreadable:
        return False


def store_of(session: Connection) -> ScheduleStore:
    """Return the store. Raises SchedulesMissing."""
    store = queue_database().dialect.schedules
    if store is None or not store.is_installed(session):
        raise SchedulesMissing
    return store


def _message(session: Connection, draft: ScheduleDraft) -> ScheduledMessage:
    if draft.to.strip() == LEASE:
        _refuse_target(LEASE_NAME)
        return content.lease_message(session, draft.message)
    database = queue_database()
    try:
        queue = database.dialect.parse_address(draft.to.strip(), database.default_schema)
    except AddressUnreadable as error:
        raise ScheduleRefused("to", f"{error}.") from error
    _refuse_target(database.dialect.canonical(queue))
    if not database.allows(queue):
        watched = ", ".join(database.schemas)
        raise ScheduleRefused("to", f"{queue.schema} is no schema that this console writes to. It may: {watched}.")
    if why := _others_code(session, queue):
        raise ScheduleRefused("to", why)
    return content.transport_message(session, database.dialect, queue, draft.message_type, draft.message)


def _refuse_target(name: str) -> None:
    if refused := queue_access.refusal_by_name(name):
        raise ScheduleRefused("to", f"It {refused}.")


def _refuse_probing(draft: ScheduleDraft, known: str = "") -> None:
    """Names are unique, so people of some queues could find hidden schedules by trying names: theirs need a prefix."""
    name, to = draft.name.strip(), draft.to.strip()
    if visible_queues.current() is None or name == known:
        return
    begin = beginning(to)
    if not name.startswith(begin):
        raise ScheduleRefused("name", f"Begin its name with “{begin}”, since your groups show you some queues.")


def beginning(to: str) -> str:
    """Return the prefix of a schedule's name that people of some queues must use."""
    if to == LEASE:
        return f"{LEASE}: "
    database = queue_database()
    try:
        queue = database.dialect.parse_address(to, database.default_schema)
    except AddressUnreadable as error:
        raise ScheduleRefused("to", f"{error}.") from error
    return f"{queue.schema}.{queue.table}"[: MOST_NAME // 2] + ": "


def _others_code(session: Connection, queue: Address) -> str:
    """Name code of other roles that an insert would run as ours, in a sentence; empty: none."""
    return others_code(judge(session, [queue])[queue].runs)


@contextmanager
def _writing() -> Iterator[tuple[Connection, ScheduleStore]]:
    with queue_database().write_session() as session:
        yield session, store_of(session)


@contextmanager
def _act(
    verb: str, schedule: int, act: Act, after: Any = None
) -> Iterator[tuple[Connection, ScheduleStore, AuditEntry]]:
    """Act on a schedule; the act is committed before its audit entry."""
    with _writing() as (session, store):
        row = _row(session, store, schedule)
        if refused := refusal(row):
            raise ActRefused(f"Nothing was changed: it {refused}.")
        about = _about(verb, row.name, act)
        with audited(**about, after=after) as audit:
            with _held(session, store, schedule, act) as name:
                audit.entry.subject = name.strip()
                yield session, store, audit.entry
            audit.done = 1


@contextmanager
def _held(session: Connection, store: ScheduleStore, schedule: int, act: Act) -> Iterator[str]:
    """Lock the schedule, so that nobody runs or changes it meanwhile."""
    with session.transaction():
        held = store.hold(session, schedule)
        if held is None:
            raise NoSuchSchedule(schedule)
        if act.version not in (None, held.version):
            raise ChangedMeanwhile(held.name, history(held.name))
        yield held.name


def _about(verb: str, name: str, act: Act) -> dict[str, Any]:
    """Return columns of its audit entry."""
    about = {"who": name_of(act.person), "noun": "schedule", "reason": act.reason, "origin": act.origin}
    return {**about, "verb": verb, "subject": name.strip()}


@contextmanager
def _one_of_a_name(draft: ScheduleDraft) -> Iterator[None]:
    try:
        yield
    except AlreadyExists:
        raise ScheduleRefused("name", f"There is a schedule named {draft.name.strip()} already.") from None


def _row(session: Connection, store: ScheduleStore, schedule: int) -> Any:
    rows = listed(session, store, schedule)
    if not rows:
        raise NoSuchSchedule(schedule)
    return rows[0]
