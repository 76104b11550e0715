"""A trial predicts a retry and leaves nothing behind."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connections

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Endpoint as EndpointRow
from pgqueue_admin.models import Process, TrialItem
from pgqueue_admin.services import trials
from pgqueue_admin.transport import Endpoint, EndpointSettings
from pgqueue_admin.transport.failure import failure_of
from pgqueue_admin.transport.handling.behaviours import BehaviourChain
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.message import IncomingMessage
from pgqueue_admin.workers.processes.archive_ports import archive_failed
from pgqueue_admin.workers.trials.trial_process import TrialProcess
from tests.databases import Databases
from tests.waiting import until
from tests.workers.host import ROOT, House, alive, want
from tests.workers.trying import handlers
from tests.workers.trying.handlers import TYPE, UNWILLING

ONCE = EndpointSettings(immediate_retries=0, delayed_retries=0, peek_delay=0.1)
QUEUE = Address("public", "Sales")
SNAPSHOT = """
select jsonb_build_object('effect', (select count(*) from effect), 'sales', (select count(*) from "Sales"),
    'elsewhere', (select count(*) from "Elsewhere"), 'delayed', (select count(*) from "Sales.Delayed"),
    'people', (select count(*) from pgqueue_console.auth_user),
    'archive', (select jsonb_agg(to_jsonb(a) order by a.id) from messages.message_archive a),
    'events', (select count(*) from messages.archive_event))::text
"""


class Shop:
    """A queue database with the endpoint Sales and the handlers of ``trying``."""

    def __init__(self, dsn: str, look: Connection):
        self.dsn, self.look = dsn, look
        columns = "what text, one int unique deferrable initially deferred"
        look.run(f"create table effect ({columns})")
        for name in ("Sales", "Elsewhere"):
            endpoint = Endpoint(name, dsn)
            endpoint.create_queues()
            if name == "Elsewhere":
                endpoint.subscribe("Shop.Told")
            endpoint.stop()

    def bury(self, way: str, type: str = TYPE, **more: Any) -> int:
        """Archive a message that died of its handler's KeyError; return its archive id."""
        text = h.dump({h.MESSAGE_ID: str(uuid4()), h.ENCLOSED_MESSAGE_TYPES: type, h.CONTENT_TYPE: "text/json"})
        body = json.dumps({"way": way, **more}).encode()
        row_id = "6f1c0a52-0000-4000-8000-000000000000"
        message = IncomingMessage(QUEUE, row_id, 0, False, text, body, h.parse(text))
        failure = failure_of(_planted(), "Sales", QUEUE, recoverable=True)
        return store.archive_failed(self.look, dead_message(message, failure, postgresql()))

    def tried(self, *ids: int) -> list[TrialItem]:
        process = TrialProcess({"Sales": handlers.sales})
        trial = trials.start(ids, "ana", "command")
        try:
            while process.run_once():
                pass
        finally:
            process.close()
        return list(trial.items.all())

    def snapshot(self) -> str:
        return str(self.look.value(SNAPSHOT))


def _planted() -> Exception:
    try:
        handlers._fail_otherwise  # noqa: B018
        raise KeyError("planted")
    except KeyError as error:
        return error


@pytest.fixture(scope="module")
def shop(databases: Databases) -> Iterator[Shop]:
    with (
        databases.clone("console") as dsn,
        databases.as_django(dsn),
        postgresql().connect(dsn, for_handlers=True) as look,
    ):
        want(0, immediate_retries=0)
        yield Shop(dsn, look)


@pytest.mark.parametrize(
    ("way", "outcome", "says"),
    [
        ("write", "succeeds", ""),
        ("fail", "raises", "planted"),
        ("fail otherwise", "raises", "another"),
        ("commit", "left", "may stand"),
        ("commit stubbornly", "left", "may stand"),
        ("defer", "raises", "effect_one_key"),
        ("ignore", "raises", "a statement failed"),
        ("models", "succeeds", ""),
        ("models durable", "raises", "durable"),
        ("models seen", "succeeds", ""),
        ("models caught", "raises", "An error occurred in the current transaction"),
        ("models commit", "left", "may stand"),
        ("elsewhere", "raises", "NoSuchQueue"),
        ("enlist", "refused", "books"),
    ],
)
def test_nothing_stays_of_what_a_handler_does(shop: Shop, way: str, outcome: str, says: str) -> None:
    archive_id = shop.bury(way)
    heard = shop.look
    heard.listen("effects")
    before = shop.snapshot()
    (item,) = shop.tried(archive_id)
    assert (item.outcome, says in item.why) == (outcome, True), item.why
    assert shop.snapshot() == before
    assert list(heard.notifications(0)) == []


@pytest.mark.parametrize(
    ("way", "outcome"),
    [
        ("models", "succeeds"),
        ("models durable", "succeeds"),
        ("models caught", "unknown"),
        ("models commit", "left"),
    ],
)
def test_nothing_stays_of_models_that_do_not_join(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, way: str, outcome: str
) -> None:
    monkeypatch.setattr(handlers.sales, "models_join", False)
    archive_id = shop.bury(way)
    before = shop.snapshot()
    (item,) = shop.tried(archive_id)
    assert item.outcome == outcome, item.why
    assert shop.snapshot() == before


def test_sends_of_a_trial_are_caught_and_counted(shop: Shop) -> None:
    (item,) = shop.tried(shop.bury("write"))
    assert item.sends == 4, "a send, a delayed one, one at once, and one to its subscriber"


def test_the_cause_is_compared(shop: Shop) -> None:
    same, other = shop.tried(shop.bury("fail"), shop.bury("fail otherwise"))
    assert (same.raised, other.raised, other.same_cause) == ("KeyError", "ValueError", False)


def test_handler_that_did_not_opt_in_is_not_run(shop: Shop) -> None:
    (item,) = shop.tried(shop.bury("write", UNWILLING))
    assert (item.outcome, "trial=True" in item.why) == ("refused", True)


def test_a_mutator_gets_around_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It turns the message into one for a handler that did not opt in."""

    def other(message: IncomingMessage) -> IncomingMessage:
        return replace(message, headers={**message.headers, h.ENCLOSED_MESSAGE_TYPES: UNWILLING})

    monkeypatch.setattr(handlers.sales, "pipeline", BehaviourChain(incoming=(other,)))
    (item,) = shop.tried(shop.bury("write"))
    assert (item.outcome, "trial=True" in item.why) == ("refused", True)


def test_an_outbox_gets_no_record(shop: Shop) -> None:
    table = Address("public", "Sales_OutboxData")
    postgresql().outbox_store(table).create(shop.look)
    sales = EndpointRow.objects.filter(name="Sales")
    sales.update(outbox="optimistic", transaction_mode="receive_only")
    try:
        before = shop.snapshot()
        (item,) = shop.tried(shop.bury("write"))
        after = shop.snapshot()
    finally:
        sales.update(outbox="off", transaction_mode="sends_atomic_with_receive")
    assert (item.outcome, item.sends) == ("succeeds", 4)
    assert json.loads(after)["effect"] == json.loads(before)["effect"]
    assert shop.look.value('select count(*) from "Sales_OutboxData"') == 0


def test_trial_begun_by_a_killed_process_is_unknown(shop: Shop) -> None:
    archive_id = shop.bury("write")
    trial = trials.start([archive_id], "ana", "command")
    trial.items.update(began_at=trial.created_at)
    process = TrialProcess({})
    assert process.run_once() is False
    process.close()
    assert trial.items.get().outcome == "unknown"


def test_trial_and_retry_agree(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five planted faults, three of them fixed: a trial predicts which, and the retry agrees."""
    ids = [shop.bury("fail", number=number) for number in range(5)]
    mended = {0, 2, 4}

    def fail(message: dict[str, Any], context: Any) -> None:
        handlers._write(message, context)
        if message["number"] not in mended:
            raise KeyError("planted")

    monkeypatch.setitem(handlers.WAYS, "fail", fail)
    before = shop.snapshot()
    said = {item.archive_id: item.outcome for item in shop.tried(*ids)}
    assert shop.snapshot() == before
    endpoint = Endpoint("Sales", shop.dsn, settings=ONCE, handlers=handlers.sales, exhausted=archive_failed)
    dead_messages.retry(shop.look, ids, "ana")
    endpoint.start()
    try:
        until(lambda: not shop.look.value('select count(*) from "Sales"'), what="all are handled or dead again")
    finally:
        endpoint.stop()
    again = {row.id for row in shop.look.all("select id from messages.message_archive where state = 'dead_again'")}
    done = {each: "raises" if each in again else "succeeds" for each in ids}
    assert said == done
    assert sorted(said.values()) == ["raises", "raises", "succeeds", "succeeds", "succeeds"]


def test_from_a_shell(shop: Shop) -> None:
    """The command waits for the process; its exit code tells whether all would succeed."""
    well, ill = shop.bury("write"), shop.bury("fail otherwise")
    process, is_over, out = TrialProcess({"Sales": handlers.sales}), threading.Event(), io.StringIO()

    def turns() -> None:
        while not is_over.is_set():
            process.run_once() or is_over.wait(0.05)
        process.close()
        connections.close_all()

    worker = threading.Thread(target=turns)
    worker.start()
    try:
        call_command("dead", "try", str(well), stdout=out)
        with pytest.raises(SystemExit) as ended:
            call_command("dead", "try", str(well), str(ill), "--json", stdout=out)
    finally:
        is_over.set()
        worker.join()
    assert "1 of 1 message would succeed." in out.getvalue()
    assert ended.value.code == 1
    said = json.loads(out.getvalue()[out.getvalue().index("{") :])
    assert [each["outcome"] for each in said["messages"]] == ["succeeds", "raises"]


def test_a_process_that_is_killed_amid_a_trial_leaves_nothing(shop: Shop, tmp_path: Path) -> None:
    """The supervisor starts it, and another that continues with the next message; none is left at the end."""
    gate = tmp_path / "gate"
    held, next_one = shop.bury("hold", gate=str(gate)), shop.bury("nothing")
    before = shop.snapshot()
    house = House(shop.dsn, shop.dsn, tmp_path / "var", apps="tests.workers.trying")
    house.supervise()
    try:
        trial = trials.start([held, next_one], "ana", "command")
        until(gate.with_suffix(".reached").exists, what="its handler runs")
        (process,) = Process.objects.filter(host=house.host, role="trial", ended_at=None)
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: not trial.items.filter(outcome="").exists(), what="the next process has tried the other")
        assert [item.outcome for item in trial.items.all()] == ["unknown", "succeeds"]
        assert shop.snapshot() == before
        until(
            lambda: not Process.objects.filter(host=house.host, role="trial", ended_at=None).exists(),
            what="none is kept",
        )
        assert not alive(process.pid)
    finally:
        house.close()


HANGS = """
import django
django.setup()
from pgqueue_admin.workers.processes import registry
from pgqueue_admin.workers.trials.trial_process import TrialProcess
TrialProcess(registry.find(), limit=0.3).run_once()
"""


def test_a_handler_that_hangs_is_ended(shop: Shop, tmp_path: Path) -> None:
    held = shop.bury("hold", gate=str(tmp_path / "gate"))
    before = shop.snapshot()
    trial = trials.start([held], "ana", "command")
    environment = House(shop.dsn, shop.dsn, tmp_path / "var", apps="tests.workers.trying").environment
    ended = subprocess.run([sys.executable, "-c", HANGS], env=environment, cwd=ROOT)
    assert ended.returncode == -signal.SIGKILL
    item = trial.items.get()
    assert (item.outcome, "longer than 0.3 s" in item.why) == ("unknown", True)
    until(lambda: shop.snapshot() == before, what="the server has undone it")
