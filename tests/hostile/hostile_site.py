"""A console over a queue database of its own, both full of what hurts: each table, each row, each name."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import environ
from django.conf import settings
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.test import Client, override_settings
from django.utils import timezone
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule
from django_celery_results.models import GroupResult, TaskResult

from pgqueue_admin.archive import ingester, lease_rules
from pgqueue_admin.archive.message_edit import MessageEdit
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import addressing, postgresql
from pgqueue_admin.models import (
    Alert,
    AlertMail,
    ApiToken,
    AuditEntry,
    Endpoint,
    FailedSignIn,
    FailureGroup,
    InFlightAtCrash,
    MinimumTtbr,
    Operation,
    PostedMark,
    Process,
    Queue,
    RetryPlan,
    RetryRule,
    SavedView,
    TrialItem,
    queue_database,
)
from pgqueue_admin.monitor import delayed, discovery
from pgqueue_admin.services import schedules, trials
from pgqueue_admin.services.operations import lifecycle, selection
from pgqueue_admin.services.operations.plans import Planned
from pgqueue_admin.services.schedules import Act, ScheduleDraft
from tests.console.sampled import elsewhere, sample
from tests.databases import Databases
from tests.history.files import TEN, message, write
from tests.hostile import change_detector
from tests.hostile.payloads import BODIES, MARKUP, NAMES, SCHEMA, TURNED, UNREADABLE, headers

SCHEMAS = ["public", "Legacy", SCHEMA, "messages", "not there"]
OUTBOX = Address(SCHEMA, 'Quo"ted <b>_OutboxData')


@dataclass
class World:
    console: Connection  # sessions of the owner, outside Django
    queues: Connection
    console_dsn: str
    queues_dsn: str
    addresses: list[Address] = field(default_factory=list)
    waiting: list[tuple[Address, str]] = field(default_factory=list)  # each hostile message

    def state(self) -> dict[str, str]:
        """The version of every row, but of people's sessions."""
        return change_detector.versions(self.console, "django_session") | change_detector.versions(self.queues)

    @property
    def dead(self) -> list[int]:
        """The archive ids of what was made here."""
        asked = "select id from messages.message_archive where id > %(recorded)s order by id"
        return [row.id for row in self.queues.all(asked, {"recorded": self.recorded})]

    recorded: int = 0
    finished: list[tuple[str, int, datetime]] = field(default_factory=list)  # of history: source, number, end

    def client(self, name: str, **options: Any) -> Client:
        client = Client(**options)
        client.force_login(User.objects.get(username=name))
        return client


@contextmanager
def made(databases: Databases) -> Iterator[World]:
    """The one that others are copied from: nobody is connected to it any more."""
    with databases.clone("console") as console, databases.clone("archived_console") as queues:
        with _entered(databases, console, queues) as made:
            _fill(made)
        yield made


@contextmanager
def in_one(databases: Databases) -> Iterator[World]:
    """All of it in one database, as where QUEUES_URL says no other."""
    with databases.clone("archived_console") as dsn, _entered(databases, dsn, dsn) as made:
        _fill(made)
        yield made


def _fill(made: World) -> None:
    _fill_queues(made)
    _people()
    sample(2)
    _fill_console(made)
    _keep_history(made)


@contextmanager
def copied(databases: Databases, made: World) -> Iterator[World]:
    console, queues = (dsn.rpartition("/")[2] for dsn in (made.console_dsn, made.queues_dsn))
    lists = {"addresses": [*made.addresses], "waiting": [*made.waiting], "finished": [*made.finished]}
    facts: dict[str, Any] = {**lists, "recorded": made.recorded}
    with (
        databases.copy(console) as console,
        databases.copy(queues) as queues,
        _entered(databases, console, queues, **facts) as copied,
    ):
        yield copied


@contextmanager
def _entered(databases: Databases, console_dsn: str, queues_dsn: str, **facts: Any) -> Iterator[World]:
    """Django looks at these two, and so do two sessions of the world's own."""
    with (
        override_settings(PGQUEUE={**settings.PGQUEUE, "SCHEMAS": SCHEMAS, "ENVIRONMENT": MARKUP}),
        databases.as_django(console_dsn),
        elsewhere("queues", **environ.Env.db_url_config(queues_dsn)),
        postgresql().connect(console_dsn, for_handlers=True) as console,
        postgresql().connect(queues_dsn, for_handlers=True) as queues,
    ):
        yield World(console, queues, console_dsn, queues_dsn, **facts)
        queue_database.close()


def _fill_queues(made: World) -> None:
    queues = made.queues
    made.recorded = queues.value("select max(id) from messages.message_archive")
    queues.run(f"create schema {addressing.quote(SCHEMA)}")
    for number, name in enumerate(NAMES):
        address = Address((SCHEMA, "public")[number % 2], name)
        queues.run(postgresql().queue.create(table=address))
        made.addresses.append(address)
        _send(made, address, headers(), BODIES[number % len(BODIES)])
    for text in UNREADABLE:
        _send(made, made.addresses[0], text, b"{}")
    for body in BODIES:
        _send(made, made.addresses[1], headers(), body)
    _keep_back(made)
    _kill(made)
    _leases(made)
    _outbox(made)
    _crossing(made)


def _leases(made: World) -> None:
    for document in ({"kind": MARKUP, MARKUP: TURNED}, [MARKUP], MARKUP, {"deep": {MARKUP: [None, 1e300]}}):
        made.queues.run("insert into messages.message (message) values (%s::jsonb)", [json.dumps(document)])


def _crossing(made: World) -> None:
    """Rows that were taken out of an error queue of another database, or were not: nobody can be told."""
    about = {"text": MARKUP, "schema": SCHEMA, "table": NAMES[0]}
    number = made.queues.value(
        "insert into messages.crossing (alias, takes_in, who, mark, not_known)"
        " values (%(text)s, true, %(text)s, %(text)s, %(text)s) returning id",
        about,
    )
    made.queues.run(
        "insert into messages.crossing_copy (crossing, found_schema, found_table, row_id, headers, number)"
        " values (%(number)s, %(schema)s, %(table)s, gen_random_uuid(), '{}', 1)",
        {**about, "number": number},
    )


def _outbox(made: World) -> None:
    """Records that wait, of what can be read and what cannot."""
    store = postgresql().outbox_store(OUTBOX)
    store.create(made.queues)
    sends = {"MessageId": MARKUP, "Headers": {MARKUP: MARKUP}, "Body": "bm8=", "Options": {"Destination": MARKUP}}
    for number, held in enumerate(([sends], [{MARKUP: TURNED}], MARKUP, None)):
        made.queues.run(*store.storing(f"{number} {MARKUP}"[:200], json.dumps(held), timedelta(seconds=1)))


def _keep_back(made: World) -> None:
    """Delayed messages that go where no queue can be, and some that cannot be read: due now, and in a month."""
    table = Address(SCHEMA, f"{NAMES[4]}.Delayed")
    texts = [headers(**{"NServiceBus.SqlServer.ForwardDestination": MARKUP}), *UNREADABLE]
    made.queues.run(postgresql().delayed.create(table=table))
    columns = {
        "headers": texts,
        "bodies": [BODIES[number % len(BODIES)] for number in range(len(texts))],
        "ats": [None] * len(texts),
        "delays_ms": [(number % 2) * 2_592_000_000 for number in range(len(texts))],
    }
    made.queues.run(postgresql().delayed.store(table=table), columns)
    found = discovery.find_one(made.queues, table)
    assert found is not None
    made.waiting += [(table, str(each.id)) for each in delayed.page(made.queues, found).messages]


def _send(made: World, address: Address, text: str, body: bytes | None) -> None:
    row_id = uuid.uuid4()
    made.queues.run(
        postgresql().queue.send(table=address), {"id": row_id, "ttbr_ms": None, "headers": text, "body": body}
    )
    made.waiting.append((address, str(row_id)))


def _kill(made: World) -> None:
    """Into the archive, by way of an error queue: one for each name and each thing that cannot be read."""
    errors = Address("public", "error")
    send = postgresql().queue.send(table=errors)
    texts = [headers(**{"NServiceBus.FailedQ": postgresql().canonical(address)}) for address in made.addresses]
    texts += [headers(**{"NServiceBus.FailedQ": wrong}) for wrong in (MARKUP, TURNED, "", "\0", "x" * 5_000)]
    rows = [(text, b"{}") for text in (*texts, *UNREADABLE)] + [(texts[0], body) for body in BODIES]
    for text, body in rows:
        made.queues.run(send, {"id": uuid.uuid4(), "ttbr_ms": None, "headers": text, "body": body})
    while ingester.ingest(made.queues, errors).full:
        pass


def _keep_history(made: World) -> None:
    """What queues forgot, as a batch would have kept it."""
    named: dict[str, Any] = {"endpoint": MARKUP, "type": f"Shop.{MARKUP}", "message_id": MARKUP, "source": MARKUP}
    wrong: dict[str, Any] = {"result": "failed", "queue": MARKUP, "exception_type": MARKUP, "exception_message": MARKUP}
    kept = [(text, b"{}") for text in (headers(), *UNREADABLE)] + [(headers(), body) for body in BODIES]
    sizes = [None if body is None else len(body) for _, body in kept]
    rows = [
        message(seq, headers=text, body=body, body_bytes=size, **named, **(wrong if seq % 2 else {}))
        for seq, ((text, body), size) in enumerate(zip(kept, sizes, strict=True), 1)
    ]
    write(settings.PGQUEUE["HISTORY_DIR"], *rows)
    made.finished = [(MARKUP, seq, TEN) for seq in range(1, len(rows) + 1)]


def _people() -> None:
    for name in ("viewer", "operator"):
        person = User.objects.create_user(name, password="of the tests", is_staff=True, first_name=MARKUP)
        if name == "operator":
            person.user_permissions.set(Permission.objects.filter(content_type__app_label="pgqueue"))
        else:
            person.user_permissions.add(Permission.objects.get(codename="read_message"))
    User.objects.create_superuser("root", password="of the tests")


def _fill_console(made: World) -> None:
    now = timezone.now()
    Queue.objects.filter(schema="public", table="Sales").update(reason=MARKUP)
    queue = Queue.objects.get(schema="public", table="Sales")
    for name in (MARKUP[:190], *NAMES):
        place = {"schema": "public", "table": name[:63]}
        Endpoint.objects.create(name=name, error_queue=MARKUP, ours=len(name) % 2 == 0, **place)
    MinimumTtbr.objects.create(queue=queue, message_type=MARKUP, ttbr_ms=1, last_seen_at=now)
    audit = {"who": MARKUP[:100], "verb": "set", "origin": "console", "reason": MARKUP + TURNED}
    changed = {"before": {"error_queue": MARKUP}, "after": {"error_queue": LINKED, MARKUP: MARKUP}}
    for noun, subject in (("endpoint", MARKUP[:190]), ("queue", '"public"."Sales"'), ("message", str(made.dead[0]))):
        AuditEntry.objects.create(noun=noun, subject=subject, **audit, **changed)
    _operations(made)
    _schedules()
    _processes(now)
    _held(made, now)
    _alerts(now)
    _failures(made, now)
    _others(now)


LINKED = "javascript:pwned()"


def _schedules() -> None:
    person = User.objects.get(username="operator")
    for number, (to, kind) in enumerate(((schedules.LEASE, ""), ("Sales", "Shop.Ping"))):
        message = json.dumps({MARKUP: TURNED})
        draft = ScheduleDraft(f"{number} {MARKUP}"[:100], to, kind, message, "0 3 * * *", "UTC", "skip")
        schedules.add(draft, Act(person, "console", MARKUP[:100]))


def _operations(made: World) -> None:
    person = User.objects.get(username="operator")
    selection.freeze("retry", made.dead[:30], person, "console", MARKUP, MARKUP)
    staged = selection.freeze("retry", made.dead[:30], person, "console", MARKUP, MARKUP)
    lifecycle.start(staged.pk, person, planned=Planned(hold_above=9))
    Operation.objects.filter(pk=staged.pk).update(state="running")
    RetryPlan.objects.filter(pk=staged.pk).update(says=MARKUP, decided_by=MARKUP[:100], held=True)
    trial = trials.start(made.dead[:5], person, "console", MARKUP, selection=MARKUP)
    said = {"why": MARKUP, "raised": MARKUP, "died_of": MARKUP, "message_type": MARKUP, "endpoint": MARKUP[:200]}
    for place, outcome in enumerate(TrialItem.Outcome.values, 1):
        trial.items.filter(position=place).update(outcome=outcome, **said)
    about: dict[str, Any] = {"who": MARKUP[:100], "origin": "console", "reason": MARKUP, "last_error": MARKUP}
    RetryRule.objects.create(message_type=MARKUP[:400], queue=MARKUP[:400], target=MARKUP[:400], who=MARKUP[:100])
    rule = {"message_type": MARKUP[:400], "results": ["failed"], "times": 1, "wait_seconds": 86_400}
    with queue_database.queue_database().write_session() as connection:
        lease_rules.create(connection, rule, MARKUP[:100], MARKUP)
    edit = MessageEdit("header", MARKUP[:100], "replace", MARKUP, MARKUP).as_dict()
    about |= {"selection": MARKUP, "edit": {"edit": edit, "seed": "seed", "sees_hidden": False, "by": MARKUP[:100]}}
    ended = {"endpoint": MARKUP, "topic": MARKUP, "queueaddress": MARKUP}
    by = {"who": MARKUP[:100], "verb": "unsubscribe", "noun": "subscription", "origin": "console"}
    AuditEntry.objects.create(**by, subject='"public"."SubscriptionRouting"', before=ended)
    for state in Operation.State.values[1:]:
        Operation.objects.create(kind="retry", state=state, queues={MARKUP: 1}, count=1, **about)


def _processes(now: Any) -> None:
    log = Path(settings.PGQUEUE["VAR"]) / "log" / "hostile.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(f"{MARKUP}\n{TURNED}\0\n".encode() + b"\xff\xfe\n")
    import socket

    for number, state in enumerate(Process.State.values):
        Process.objects.create(
            role="endpoint", endpoint=MARKUP[:190], host=socket.gethostname(), pid=number, start_ticks=1, state=state,
            code_version=MARKUP[:60], log=str(log), last_error=MARKUP, started_at=now, heartbeat_at=now,
            ended_at=now if state in {"crashed", "back-off"} else None,
        )  # fmt: skip
    Process.objects.create(
        role="supervisor",
        host=MARKUP[:190],
        pid=1,
        start_ticks=1,
        started_at=now,
        heartbeat_at=now - timedelta(hours=1),
    )


def _held(made: World, now: Any) -> None:
    """A message that was in hand at three deaths."""
    address, row_id = made.waiting[0]
    about = {"schema": address.schema, "table": address.table, "row_id": row_id, "seq": 1, "endpoint": MARKUP[:190]}
    said = {"message_id": MARKUP[:100], "message_type": MARKUP[:120], "host": MARKUP, "how": MARKUP}
    for pid in range(3):
        InFlightAtCrash.objects.create(
            received_at=now, died_at=now, pid=pid, start_ticks=1, exit_code=-9, others_in_flight=pid, **about, **said
        )


def _failures(made: World, now: Any) -> None:
    """What somebody said of a failure of the archive."""
    digest = made.queues.value("select min(fingerprint) from messages.message_archive where state = 'dead'")
    said = {"exception": MARKUP[:400], "frame": MARKUP, "message": MARKUP, "note": MARKUP, "noted_at": now}
    people = {"owner": MARKUP[:150], "noted_by": MARKUP[:150], "acknowledged_by": MARKUP[:150], "acknowledged_at": now}
    FailureGroup.objects.create(
        fingerprint=digest, ticket=f"https://{MARKUP}"[:200], acknowledged_to=10**9, acknowledged_reason=MARKUP[:200],
        first_at=now, **said, **people,
    )  # fmt: skip


def _alerts(now: Any) -> None:
    said = {"sentence": MARKUP, "meaning": MARKUP, "value": MARKUP[:90], "threshold": MARKUP[:90]}
    kinds = {"dead_message": MARKUP, "peek_range": '"public"."Sales"', "no such kind": ""}
    for number, (kind, queue) in enumerate(kinds.items()):
        alert = Alert.objects.create(
            kind=kind, subject=MARKUP, cause=MARKUP, severity="critical", queue=queue,
            opened_at=now - timedelta(minutes=5), last_seen_at=now, resolved_at=now if number == 2 else None, **said,
        )  # fmt: skip
        AlertMail.objects.create(
            alert=alert, message_id=f"{number}@{MARKUP}"[:200], to=MARKUP, subject=MARKUP, text=MARKUP, html=MARKUP,
            state="failed", error=MARKUP,
        )  # fmt: skip


def _others(now: Any) -> None:
    """What Django admin shows of its own and of Celery."""
    Group.objects.create(name=MARKUP)
    ApiToken.objects.create(name=MARKUP[:60], digest="0" * 64, rights=[MARKUP], created_by=MARKUP[:150])
    PostedMark.objects.create(at=now, who=MARKUP[:60], text=MARKUP[:200], link=f"https://{MARKUP}"[:500])
    SavedView.objects.create(
        slug="shared", name=MARKUP[:60], page="archive", query=f"q={MARKUP}", owner=MARKUP[:150], is_shared=True
    )
    SavedView.objects.create(
        slug="listed", name=MARKUP[:60], page="queues", query="sort=name", owner=MARKUP[:150], is_shared=True
    )
    FailedSignIn.objects.create(name=MARKUP[:150], place=MARKUP[:60], address=MARKUP[:60])
    interval = IntervalSchedule.objects.create(every=7, period="days")
    CrontabSchedule.objects.create()
    SolarSchedule.objects.create(event="sunset", latitude=1, longitude=1)
    ClockedSchedule.objects.create(clocked_time=now + timedelta(days=1))
    PeriodicTask.objects.create(name=MARKUP, task=MARKUP, interval=interval, description=MARKUP, enabled=False)
    TaskResult.objects.create(task_id=MARKUP, task_name=MARKUP, result=f'"{LINKED}"', traceback=MARKUP)
    GroupResult.objects.create(group_id=MARKUP, result=MARKUP)
    root = User.objects.get(username="root")
    kind = ContentType.objects.get_for_model(Group)
    about = {"object_id": Group.objects.get().pk, "object_repr": MARKUP, "action_flag": ADDITION}
    LogEntry.objects.create(user=root, content_type=kind, change_message=MARKUP, **about)
