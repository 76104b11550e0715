"""Every address, as somebody who may do everything but read what messages say: nothing of it is in any answer."""

import base64
import json
import socket
import uuid
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from pgqueue_admin.archive import ingester
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Alert, AlertMail, AuditEntry, FailureGroup, Process, SavedView
from pgqueue_admin.monitor import delayed, discovery
from pgqueue_admin.services.content_access import REFUSED
from pgqueue_admin.services.masking.headers import HIDDEN
from tests.console.sampled import sample
from tests.history.files import TEN, message, write
from tests.hostile import crawl
from tests.hostile.hostile_site import OUTBOX, World

SAID = escape(REFUSED)
MARK = "zq7bodyzq7"
BODY = json.dumps({"order": MARK, MARK: [MARK]}).encode()
SEQ = 4_711
LISTS = {
    "archive", "bin", "failures", "audit", "workers", "admin:pgqueue_archivedmessage_change",
    "admin:pgqueue_auditentry_changelist", "admin:pgqueue_failuregroup_changelist",
}  # fmt: skip
BILLING = "/queues/public/Billing/messages/"
SECRET_SEARCHES = (
    "zq7body", '"zq7body"', "body:zq7body", "body.order:zq7body", "headers:zq7body", "header.Shop.Card:zq7body",
    "message:zq7body", "-zq7body", "state:dead (type:x OR zq7body)", "-(body.order:=zq7bodyzq7)",
)  # fmt: skip
OPEN_SEARCHES = ("type:Shop.PlaceOrder", "error:Shop.Boom", "conversation:c-4711", "size:>1", "state:dead age:<30d")


@pytest.fixture(scope="module")
def planted(world: World) -> SimpleNamespace:
    """A text that stands in bodies, header values and what exceptions say alone, in every place that keeps them."""
    row_id = uuid.uuid4()
    values = {"id": row_id, "ttbr_ms": None, "headers": _headers(), "body": BODY}
    world.queues.run(postgresql().queue.send(table=Address("public", "Billing")), values)
    table = next(address for address, _ in world.waiting if address.table.endswith(".Delayed"))
    late_id = _delayed(world, table)
    discarded, archived = _kill(world), _kill(world)
    world.queues.run(
        "update messages.message_archive set resolution = 'discarded', resolved_by = 'bo', resolved_at = now()"
        " where id = %(id)s",
        {"id": discarded},
    )
    world.queues.run(
        "update messages.message set message = %(document)s::jsonb where id = 1",
        {"document": json.dumps({"kind": "Pay", "card": MARK})},
    )
    _outbox(world)
    died: dict[str, Any] = {"exception_type": "Shop.Boom", "exception_message": MARK}
    kept = message(SEQ, headers=_headers(), body=BODY, result="failed", **died)
    write(settings.PGQUEUE["HISTORY_DIR"], kept)
    number, process = _console(world, archived)
    sample()
    world.waiting += [(Address("public", "Billing"), str(row_id)), (table, str(late_id))]
    world.finished += [("audit", SEQ, TEN)]
    places = (row_id, late_id, archived, number, process, _fingerprint(world, archived), SEQ, 1)
    return SimpleNamespace(row_id=str(row_id), archived=archived, ids={str(each) for each in places})


def _headers(**more: str) -> str:
    named = {
        "MessageId": "m-4711", "ConversationId": "c-4711", "EnclosedMessageTypes": "Shop.PlaceOrder",
        "ContentType": "application/json", "ExceptionInfo.ExceptionType": "Shop.Boom",
        "ExceptionInfo.Message": f"no card {MARK}", "ExceptionInfo.StackTrace": f"   at Shop.{MARK}() in x.cs:line 7",
        "ExceptionInfo.Data.Card": MARK,
    }  # fmt: skip
    return json.dumps({f"NServiceBus.{name}": value for name, value in named.items()} | {"Shop.Card": MARK} | more)


def _delayed(world: World, table: Address) -> str:
    columns = {"headers": [_headers()], "bodies": [BODY], "ats": [None], "delays_ms": [0]}
    world.queues.run(postgresql().delayed.store(table=table), columns)
    found = discovery.find_one(world.queues, table)
    assert found
    return next(str(each.id) for each in delayed.page(world.queues, found).messages if each.message_id == "m-4711")


def _kill(world: World) -> int:
    errors = Address("public", "error")
    dead = _headers(**{"NServiceBus.FailedQ": '"public"."Billing"'})
    values = {"id": uuid.uuid4(), "ttbr_ms": None, "headers": dead, "body": BODY}
    world.queues.run(postgresql().queue.send(table=errors), values)
    while ingester.ingest(world.queues, errors).full:
        pass
    return int(world.queues.value("select max(id) from messages.message_archive"))


def _fingerprint(world: World, archived: int) -> str:
    asked = "select fingerprint from messages.message_archive where id = %(id)s"
    return str(world.queues.value(asked, {"id": archived}))


def _outbox(world: World) -> None:
    body = base64.b64encode(BODY).decode()
    sends = {"MessageId": "o-1", "Headers": {"Shop.Card": MARK}, "Body": body, "Options": {}}
    for number, text in enumerate((json.dumps([sends]), json.dumps({"order": MARK}))):
        store = postgresql().outbox_store(OUTBOX)
        world.queues.run(*store.storing(f"unread {number}", text, timedelta(seconds=1)))


def _console(world: World, archived: int) -> tuple[int, int]:
    digest = _fingerprint(world, archived)
    FailureGroup.objects.filter(pk=digest).delete()
    FailureGroup.objects.create(
        fingerprint=digest, exception="Shop.Boom", message=f"no card {MARK}", frame=f"Shop.{MARK}()",
        first_at=timezone.now(), owner="ana",
    )  # fmt: skip
    edit = {
        "before": {"headers": {"Shop.Card": MARK}},
        "after": {"headers": {"Shop.Card": MARK}, "archive_id": archived},
    }
    AuditEntry.objects.create(
        who="ana", verb="edit", noun="message", subject='"public"."Billing"', origin="console",
        bodies={"before": MARK, "after": MARK}, **edit,
    )  # fmt: skip
    searched = f"body.order:{MARK}"
    AuditEntry.objects.create(
        who="ana", verb="export", noun="archive", subject=searched, origin="console", after={"q": searched}
    )
    view = {"name": "An order", "slug": "an-order", "page": "archive", "query": urlencode({"q": searched})}
    SavedView.objects.create(owner="ana", is_shared=True, **view)
    mail = AlertMail.objects.create(
        alert=Alert.objects.filter(kind="dead_message").first(), message_id="unread@x", to="ops@x", subject="1 died",
        text=f"Shop.Boom: {MARK}", html=MARK, state="sent",
    )  # fmt: skip
    log = Path(settings.PGQUEUE["VAR"]) / "log" / "unread.log"
    log.write_text(f"ERROR {MARK}\n")
    process = Process.objects.create(
        role="endpoint", endpoint="Billing", host=socket.gethostname(), pid=4_711, start_ticks=1, state="running",
        log=str(log), started_at=timezone.now(),
        heartbeat_at=timezone.now() - timedelta(hours=1),  # of a silent one Workers shows the log's end
    )  # fmt: skip
    return mail.pk, process.pk


@pytest.fixture(scope="module")
def counter(world: World) -> Client:
    """Django admin, too, and every right but the one."""
    person = User.objects.create_user("counter", is_staff=True)
    person.user_permissions.set(Permission.objects.exclude(codename="read_message"))
    return world.client("counter", raise_request_exception=False)


@pytest.fixture(scope="module")
def every(world: World, planted: SimpleNamespace) -> list[tuple[str, str]]:
    return crawl.paths(world)


@pytest.fixture(scope="module")
def telling(every: list[tuple[str, str]], planted: SimpleNamespace) -> list[tuple[str, str]]:
    """Where somebody with the right finds the text."""
    one, row = f"/archive/{planted.archived}/", f"{BILLING}{planted.row_id}/"
    more = [
        *(f"{one}?{asked}" for asked in ("body=raw", "body=hex", "body=bodystring", "trace=full", "q=state:dead")),
        f"{row}?body=raw",
        f"{row}?body=bodystring",
        f"{BILLING}?cols=bodyline&order=newest",
        "/queues/messages/message/?ends=1",
        "/conversations/c-4711/?history=1",
        "/failures/?q=error:Shop.Boom",
        "/audit/?q=did:edited",
        "/archive/?q=",
        "/views/",
        "/views/an-order/",
    ]
    record = {"schema": OUTBOX.schema, "table": OUTBOX.table}
    records = [reverse("outbox_record", kwargs={**record, "message_id": f"unread {number}"}) for number in (0, 1)]
    known = [(name, path) for name, path in every if name in LISTS or planted.ids & set(path.split("/"))]
    told = [*((name, path) for name, path in known if name not in crawl.ACTS), *(("", path) for path in more)]
    return [*told, *(("outbox_record", path) for path in records)]


def test_no_answer_has_what_messages_say(
    counter: Client, every: list[tuple[str, str]], telling: list[tuple[str, str]]
) -> None:
    addresses = dict.fromkeys([*crawl.few(every, 1), *telling])
    leaks = [path for _, path, answer in crawl.get(counter, addresses) if MARK in _said(answer)]
    assert leaks == []


def test_with_the_right_it_is_there(world: World, telling: list[tuple[str, str]]) -> None:
    """Else the test above would show nothing."""
    told = {name for name, _, answer in crawl.get(world.client("root"), telling) if MARK in _said(answer)}
    assert told >= LISTS | {
        "archived_message", "archived_body", "archived_headers", "edit_message", "waiting_message", "waiting_body",
        "lease_message", "finished_message", "outbox_record", "failure", "alert_mail", "worker_log", "worker_log_whole",
    }  # fmt: skip


def _said(answer: Any) -> str:
    if not answer.streaming:
        return str(answer.content.decode(errors="replace"))
    if answer.is_async and answer["Content-Type"] == "application/octet-stream":
        return str(async_to_sync(_read)(answer.streaming_content))
    return str(getattr(answer, "content_read", b"").decode(errors="replace"))


async def _read(pieces: Any) -> str:
    return b"".join([piece async for piece in pieces]).decode(errors="replace")


def test_what_others_searched_for_is_not_told(world: World, counter: Client, planted: SimpleNamespace) -> None:
    """Neither where a failure's page says what happened before it began, nor by a view that somebody shares."""
    failure = f"/failures/{_fingerprint(world, planted.archived)}/"
    page, whole = (client.get(failure).content.decode() for client in (counter, world.client("root")))
    assert "a search in what messages say, which you may not see" in page
    assert f"body.order:{MARK}" in whole
    assert counter.get("/views/an-order/").status_code == 404
    assert "an-order" not in counter.get("/archive/?q=").content.decode()
    assert MARK in world.client("root").get("/views/an-order/")["Location"]


def test_the_page_says_which_right_is_missing_and_shows_figures(counter: Client, planted: SimpleNamespace) -> None:
    page = counter.get(f"/archive/{planted.archived}/").content.decode()
    for said in (SAID, "Shop.Boom", "PlaceOrder", "m-4711", "Shop.Card", HIDDEN, "Billing"):
        assert said in page, said
    assert "shown under Error" not in page
    for name in ("body", "headers"):
        answer = counter.get(f"/archive/{planted.archived}/{name}/")
        assert (answer.status_code, answer.content.decode().strip()) == (403, REFUSED)


@pytest.mark.parametrize("asked", SECRET_SEARCHES)
def test_a_search_is_no_oracle(counter: Client, asked: str) -> None:
    for page in ("/archive/", "/failures/"):
        html = counter.get(f"{page}?q={quote(asked)}").content.decode()
        assert SAID in html
        assert "Shop.Boom" not in html
    before = AuditEntry.objects.count()
    counter.post("/operations/", {"act": "discard", "all": "matching", "q": asked, "w": "W10"})
    assert AuditEntry.objects.count() == before


@pytest.mark.parametrize("asked", OPEN_SEARCHES)
def test_figures_are_searched(world: World, counter: Client, asked: str) -> None:
    assert SAID not in world.client("counter").get(f"/archive/?q={quote(asked)}").content.decode()


def test_nothing_is_edited_or_exported(counter: Client, planted: SimpleNamespace) -> None:
    edit = reverse("edit_message", args=[planted.archived])
    for asked in ({"look": "1", "body": "{}"}, {"body": "{}", "reason": "x", "to": '"public"."Billing"'}):
        answer = counter.post(edit, asked)
        assert answer.status_code == 409
        assert MARK not in answer.content.decode()
    for kind in ("csv", "jsonl"):
        file: Any = counter.post("/audit/export/", {"q": "", "format": kind})
        written = b"".join(file.streaming_content).decode()
        assert "Shop.Card" in written
        assert MARK not in written


def test_a_file_of_messages_has_their_figures_alone(world: World, planted: SimpleNamespace) -> None:
    User.objects.create_user("exporter").user_permissions.add(Permission.objects.get(codename="change_settings"))
    exporter = world.client("exporter")
    for kind in ("csv", "jsonl"):
        file: Any = exporter.post("/archive/export/", {"q": "", "format": kind})
        written = str(async_to_sync(_read)(file.streaming_content))
        assert "Shop.Card" in written
        assert MARK not in written
    reader: Any = world.client("root").post("/archive/export/", {"q": "", "format": "csv"})
    assert MARK in str(async_to_sync(_read)(reader.streaming_content))
