"""Each act requires the permission that its page names, and that permission suffices."""

from pgqueue_admin.services.permissions import PERMISSIONS, refusal_for
from tests.archived_messages import person

ASKED = {
    "retry": "retry_message",
    "call back": "retry_message",
    "decide": "retry_message",
    "purge": "discard_message",
    "try": "retry_message",
    "discard": "discard_message",
    "restore": "discard_message",
    "move_out": "discard_message",
    "move": "retry_message",
    "run_now": "retry_message",
    "cancel": "discard_message",
    "send": "retry_message",
    "unsubscribe": "change_settings",
    "publish": "retry_message",
    "release": "retry_message",
    "end": "discard_message",
    "dispatch": "retry_message",
    "run": "run_endpoint",
    "log": "run_endpoint",
    "set": "change_settings",
    "acknowledge": "change_settings",
    "schedule": "change_schedule",
    "export": "change_settings",
    "share": "change_settings",
    "read": "read_message",
    "reveal": "reveal_masked",
}


def test_an_act_asks_its_own_right_and_no_other() -> None:
    """A user who may only stop endpoints must not silence warnings, nor restore with the right to retry."""
    holders = {right: person(right, right) for right in sorted(set(ASKED.values()))}
    let = {verb: [right for right, holder in holders.items() if not refusal_for(holder, verb)] for verb in PERMISSIONS}
    assert let == {verb: [right] for verb, right in ASKED.items()}
