"""Every verb that the code writes to the audit has a past tense, and no other verb has one."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pgqueue_admin.formatting import audit_verbs
from pgqueue_admin.models import Operation

PACKAGE = Path(__file__).resolve().parent.parent.parent / "pgqueue_admin"
WRITES = re.compile(r"AuditEntry\.objects\.create\(|with \(?\s*audited\(|audit_intents\.keep\(")


def writers() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if WRITES.search(path.read_text("utf-8"))]


def verbs(path: Path) -> set[str]:
    """Constants passed as ``verb``: by keyword, in a dictionary, or by the position of that parameter."""
    tree = ast.parse(path.read_text("utf-8"))
    return {node.value for node in _given(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _given(tree: ast.Module) -> Iterator[ast.expr]:
    places = dict(_places(tree)) | {"EndpointAction": 0}
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = (key.value if isinstance(key, ast.Constant) else None for key in node.keys)
            yield from (value for key, value in zip(keys, node.values, strict=True) if key == "verb")
        if isinstance(node, ast.Call):
            yield from (each.value for each in node.keywords if each.arg == "verb")
            place = places.get(node.func.id) if isinstance(node.func, ast.Name) else None
            yield from node.args[place : place + 1] if place is not None else []


def _places(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from ((node.name, place) for place, each in enumerate(node.args.args) if each.arg == "verb")


@cache
def written() -> frozenset[str]:
    paths = [*writers(), PACKAGE / "services/endpoints.py"]  # which writes through endpoint_change
    return frozenset(Operation.Kind.values).union(*(verbs(path) for path in paths))


def test_the_verbs_are_found() -> None:
    assert {path.name for path in writers()} == {
        "waiting_elsewhere.py",
        "acknowledgements.py", "endpoint_change.py", "endpoints.py", "history_requests.py", "hosts.py",
        "lifecycle.py", "login_throttle.py", "crashing_message.py", "queues.py", "sample_mail.py",
        "audit_exports.py", "edited_retry.py", "failure_groups.py", "leases.py", "lease_rules.py", "acts.py",
        "pg_cron.py",
        "switches.py", "schedules.py", "api_tokens.py", "waiting_messages.py", "typed_messages.py",
        "subscriptions.py",
        "staged_controls.py", "saved_views.py", "retry_rules.py", "rule_changes.py", "reveals.py",
        "message_copies.py", "trials.py", "queue_scopes.py", "crossing_decision.py", "audit_intents.py",
        "staged_retry.py",
    }  # fmt: skip
    assert {"restart", "create", "run", "recompute", "move out", "withdraw", "retry", "undo"} <= written()


@pytest.mark.parametrize("verb", sorted(written()))
def test_a_written_verb_has_its_past_tense(verb: str) -> None:
    assert verb in audit_verbs.ACTS


def test_no_other_has_one() -> None:
    assert sorted(audit_verbs.ACTS) == sorted(written())
