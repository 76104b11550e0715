"""Every address that is about a queue, as each kind of person, for a queue of theirs and for another's."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import NoReverseMatch, reverse

from pgqueue_admin.console.scopes.addresses import NARROWED, OF_MACHINES
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Alert, InFlightAtCrash, Operation, QueueScope, Trial, TrialItem, database_clock
from pgqueue_admin.services.operations import selection
from tests.hostile import crawl
from tests.hostile.hostile_site import World
from tests.hostile.test_scoped import INSIDE, MARK, NAME, SECRET, _send, planted

__all__ = ["planted"]
MISSING = "needs a group that may act on"
# of queues, but not by an argument of a queue's own: what is found there is narrowed (test_scoped)
BY_SEARCH = {"find_message", "conversation", "view", "view_rename", "view_remove", "view_default"}
# says in words on the page before what it refuses
SAYS_AFTER = {"failure_assignment", "failure_acknowledgement"}


class Role:
    """Somebody of a group with this scope, with every right or with none."""

    def __init__(self, name: str, pattern: str, *, acts: bool, rights: bool):
        self.name, self.pattern, self.acts, self.rights = name, pattern, acts, rights

    def client(self, world: World) -> Client:
        group = Group.objects.create(name=f"matrix {self.name}")
        if self.rights:
            group.permissions.set(Permission.objects.all())
        QueueScope.objects.create(group=group, pattern=self.pattern, may_act=self.acts)
        User.objects.create_user(f"matrix-{self.name}").groups.add(group)
        return world.client(f"matrix-{self.name}", raise_request_exception=False)


ROLES = [
    Role("looker", "public.Billing*", acts=False, rights=True),
    Role("rightless", "public.Billing*", acts=True, rights=False),
    Role("elsewhere", "public.Sales", acts=True, rights=True),
    Role("actor", "public.Billing*", acts=True, rights=True),  # last: what is removed is nobody's after that
]


@pytest.fixture(scope="module")
def clients(world: World) -> dict[str, Client]:
    return {role.name: role.client(world) for role in ROLES}


@pytest.fixture(scope="module")
def examples(world: World, planted: SimpleNamespace) -> dict[str, dict[str, dict[str, Any]]]:
    """By place, and by what an address is of: the arguments that mean something there."""
    places: dict[str, dict[str, dict[str, Any]]] = {}
    now = database_clock.now()
    for place, dead, queue, address in (
        ("own", planted.inside, INSIDE, {"schema": "public", "table": "Billing"}),
        ("other", planted.dead, NAME, {"schema": SECRET.schema, "table": SECRET.table}),
    ):
        trial = Trial.objects.create(who="root", origin="console", of=1, until=now)
        TrialItem.objects.create(trial=trial, position=1, archive_id=dead, outcome="refused")
        alert = Alert.objects.create(
            kind="off_target", subject=f"matrix {place}", queue=queue, severity="critical", sentence="late",
            opened_at=now, last_seen_at=now,
        )  # fmt: skip
        frozen = selection.freeze("retry", [dead], "root", "console", "matrix")
        asked = {"id": dead}
        digest = world.queues.value("select fingerprint from messages.message_archive where id = %(id)s", asked)
        row_id = _send(world, Address(**address), "{}")
        places[place] = {
            "queue": address, "row": {**address, "row_id": row_id}, "archived": {"archive_id": dead},
            "operation": {"number": frozen.pk}, "alert": {"number": alert.pk}, "trial": {"number": trial.pk},
            "failure": {"fingerprint": digest}, "undo": {**address, "entry_id": 1},
            "endpoint": {"name": (endpoint := "Ours" if place == "own" else f"{MARK}.Orders")},
            "schedule": {"schedule_id": planted.ours if place == "own" else planted.schedule},
            "endpoint undo": {"name": endpoint, "entry_id": 1},
            "crashing": {"row_id": _crashed(address, row_id)},
        }  # fmt: skip
    return places


def _crashed(address: dict[str, str], row_id: str) -> str:
    now = database_clock.now()
    for number in range(3):
        InFlightAtCrash.objects.create(
            endpoint="Billing", **address, row_id=row_id, seq=1, received_at=now, died_at=now, host="matrix",
            pid=70_000 + InFlightAtCrash.objects.count(), start_ticks=number, exit_code=1, how="was killed",
        )  # fmt: skip
    return row_id


def addresses() -> list[tuple[str, str]]:
    """Name, and of what: of every address that knows scopes and has arguments. One without a kind fails the test."""
    found = []
    for name, pattern in crawl.names():
        if name in NARROWED and "<" in pattern and name not in BY_SEARCH:
            found.append((name, _kind(name, pattern)))
    return found


def _kind(name: str, pattern: str) -> str:
    if "<int:number>" in pattern and name.startswith("lease_"):
        return ""  # its queue's address is in the same path, and has no second queue to be of
    if name == "endpoint_undo":
        return "endpoint undo"
    for kind, says in (
        ("undo", "<int:entry_id>"), ("row", "<uuid:row_id>"), ("queue", "<name:table>"),
        ("archived", "<int:archive_id>"), ("failure", "<str:fingerprint>"),
    ):  # fmt: skip
        if says in pattern:
            return "crashing" if kind == "row" and "<name:table>" not in pattern else kind
    for kind in ("operation", "alert", "trial", "endpoint", "schedule"):
        if name.startswith(kind):
            return kind
    raise AssertionError(f"{name}: say here of which queue {pattern} is")


def _path(name: str, arguments: dict[str, Any]) -> str:
    try:
        return reverse(name, kwargs=arguments)
    except NoReverseMatch:
        return ""


def _is_of_the_lease_queue(name: str) -> bool:
    return name.startswith("lease_")


def test_every_address_of_a_queue_answers_by_role_and_queue(
    world: World, clients: dict[str, Client], examples: dict[str, dict[str, dict[str, Any]]]
) -> None:
    wrong = list[str]()
    meant = [(name, kind) for name, kind in addresses() if not _is_of_the_lease_queue(name)]
    assert len(meant) >= 30
    for name, kind in meant:
        for place, of in examples.items():
            path = _path(name, of[kind])
            assert path, f"{name} takes other arguments than {of[kind]}"
            for role in ROLES:
                client = clients[role.name]
                sees = place == "own" and role.name != "elsewhere"
                got = client.get(path).status_code
                posted = client.post(path, {"reason": "matrix"})
                if not sees:
                    wrong += _unless(got in (404, 405), role, "GET", path, got)
                    if role.rights or name not in SAYS_AFTER:  # who has no right is told so of whatever there is
                        wrong += _unless(posted.status_code in (404, 405), role, "POST", path, posted.status_code)
                    continue
                wrong += _unless(got < 500 and (got != 403 or not role.rights), role, "GET", path, got)
                if not role.acts and name not in SAYS_AFTER:
                    refused = posted.status_code == 403 and MISSING in posted.content.decode()
                    said = refused or (kind == "failure" and posted.status_code == 405)  # of no single queue
                    wrong += _unless(said, role, "POST", path, posted.status_code)
                if role.acts and role.rights:
                    done = posted.status_code != 403 and posted.status_code < 500
                    wrong += _unless(done, role, "POST", path, posted.status_code)
    assert not wrong, "\n".join(wrong)


def _unless(holds: bool, role: Role, method: str, path: str, status: int) -> list[str]:
    return [] if holds else [f"{role.name} {method} {path}: {status}"]


def test_nobody_without_right_or_scope_changes_anything(
    world: World, clients: dict[str, Client], examples: dict[str, dict[str, dict[str, Any]]]
) -> None:
    said = {
        "reason": "matrix",
        "sure": "yes",
        "owner": "me",
        "until": "4 h",
        "act": "discard",
        "at_once": "yes",
        "rate": "5",
    }
    refused, outsider = (clients["rightless"], clients["looker"]), clients["elsewhere"]
    before = world.state()
    for name, kind in addresses():
        if _is_of_the_lease_queue(name):
            continue
        for client in refused:
            client.post(_path(name, examples["own"][kind]), said)
        for place in examples:
            outsider.post(_path(name, examples[place][kind]), said)
    assert {name for name, version in world.state().items() if before.get(name) != version} == set()


def test_an_address_that_knows_no_scopes_is_refused_to_each(
    world: World, clients: dict[str, Client], examples: dict[str, dict[str, dict[str, Any]]]
) -> None:
    rest = [(n, p) for n, p in crawl.few(crawl.paths(world), 1) if n not in NARROWED | OF_MACHINES and ":" not in n]
    assert len(rest) > 30
    wrong, started = [], Operation._base_manager.exclude(started_by="").count()
    for role in ROLES:
        client = clients[role.name]
        for name, path in rest:
            for status in (client.get(path).status_code, client.post(path, {"reason": "matrix"}).status_code):
                wrong += _unless(status in (403, 404) or name == "metrics", role, "any", path, status)
    assert not wrong, "\n".join(wrong)
    assert Operation._base_manager.exclude(started_by="").count() == started
