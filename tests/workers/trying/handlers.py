"""A handler that allows trials and does what the message says; and one that does not allow them."""

import threading
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, connections, transaction

from pgqueue_admin.transport import MessageContext
from pgqueue_admin.workers.processes.registry import endpoint

TYPE, UNWILLING = "Shop.Try", "Shop.TryNot"

sales = endpoint("Sales")


@sales.handle(TYPE, trial=True)
def act(message: dict[str, Any], context: MessageContext) -> None:
    WAYS[message["way"]](message, context)


@sales.handle(UNWILLING)
def unwilling(message: dict[str, Any], context: MessageContext) -> None:
    raise AssertionError("it is never run in a trial")


def _write(message: dict[str, Any], context: MessageContext) -> None:
    assert context.connection
    context.connection.run("insert into effect (what) values (%s)", [message["way"]])
    context.connection.notify("effects", "told")
    context.send("Elsewhere", {}, type="Shop.Told")
    context.send("Elsewhere", {}, type="Shop.Told", delay=timedelta(minutes=1))
    context.send("Elsewhere", {}, type="Shop.Told", immediate=True)
    context.publish({}, type="Shop.Told")


def _fail(message: dict[str, Any], context: MessageContext) -> None:
    _write(message, context)
    raise KeyError("planted")


def _fail_otherwise(message: dict[str, Any], context: MessageContext) -> None:
    raise ValueError("another")


def _commit(message: dict[str, Any], context: MessageContext) -> None:
    assert context.connection
    context.connection.run("insert into effect (what) values ('committed')")
    context.connection.run("commit")


def _commit_stubbornly(message: dict[str, Any], context: MessageContext) -> None:
    """Ignore errors and continue in a transaction of its own."""
    assert context.connection
    raw = context.connection.raw
    raw.execute("insert into effect (what) values ('committed')")
    with suppress(Exception):
        raw.execute("commit")
    with suppress(Exception):
        raw.execute("insert into effect (what) values ('autocommitted')")
    raw.execute("begin")


def _defer(message: dict[str, Any], context: MessageContext) -> None:
    """Write rows that fail only at the commit."""
    assert context.connection
    context.connection.run("insert into effect (what, one) values ('a', 1), ('b', 1)")


def _ignore(message: dict[str, Any], context: MessageContext) -> None:
    """Ignore a failed statement."""
    assert context.connection
    with suppress(Exception):
        context.connection.run("select 1 / 0")


def _models(message: dict[str, Any], context: MessageContext) -> None:
    User.objects.create_user("alone")
    with transaction.atomic():
        User.objects.create_user("in a block")
        transaction.on_commit(lambda: User.objects.create_user("after"))


def _models_durable(message: dict[str, Any], context: MessageContext) -> None:
    with transaction.atomic(durable=True):
        User.objects.create_user("durable")


def _models_seen(message: dict[str, Any], context: MessageContext) -> None:
    """Both write in one transaction and do not wait for each other's locks."""
    user = User.objects.create_user("seen")
    assert context.connection
    changed = "update pgqueue_console.auth_user set first_name = 'Ana' where id = %s"
    assert context.connection.run(changed, [user.pk]) == 1
    assert User.objects.get(first_name="Ana") == user


def _models_caught(message: dict[str, Any], context: MessageContext) -> None:
    User.objects.create_user("twice")
    with suppress(IntegrityError):
        User.objects.create_user("twice")
    User.objects.count()


def _models_commit(message: dict[str, Any], context: MessageContext) -> None:
    User.objects.create_user("raw")
    connections["default"].connection.execute("commit")


def _elsewhere(message: dict[str, Any], context: MessageContext) -> None:
    context.send("NoSuchQueue", {}, type="Shop.Told")


def _enlist(message: dict[str, Any], context: MessageContext) -> None:
    context.enlist("books")


def _hold(message: dict[str, Any], context: MessageContext) -> None:
    _write(message, context)
    gate = Path(message["gate"])
    gate.with_suffix(".reached").touch()
    while not gate.exists():
        threading.Event().wait(0.02)


def _nothing(message: dict[str, Any], context: MessageContext) -> None: ...


WAYS = {
    "write": _write,
    "fail": _fail,
    "fail otherwise": _fail_otherwise,
    "commit": _commit,
    "commit stubbornly": _commit_stubbornly,
    "defer": _defer,
    "ignore": _ignore,
    "models": _models,
    "models durable": _models_durable,
    "models seen": _models_seen,
    "models caught": _models_caught,
    "models commit": _models_commit,
    "elsewhere": _elsewhere,
    "enlist": _enlist,
    "hold": _hold,
    "nothing": _nothing,
}
