"""The audit's verbs: each act in the past tense, and what it counts."""

from typing import NamedTuple


class AuditVerb(NamedTuple):
    past: str
    counts: str = ""  # the counted noun, if there may be many


ACTS = {
    "retry": AuditVerb("retried", "message"),
    "try": AuditVerb("tried without effect", "message"),
    "edit": AuditVerb("edited and retried", "message"),
    "discard": AuditVerb("discarded", "message"),
    "restore": AuditVerb("restored", "message"),
    "call back": AuditVerb("called back", "message"),
    "decide": AuditVerb("said what became of", "message"),
    "purge": AuditVerb("purged", "message"),
    "move out": AuditVerb("moved out", "message"),
    "move": AuditVerb("moved", "message"),
    "copy": AuditVerb("copied", "message"),
    "run delayed": AuditVerb("let go before its time", "message"),
    "cancel delayed": AuditVerb("cancelled", "delayed message"),
    "unsubscribe": AuditVerb("unsubscribed"),
    "publish": AuditVerb("published"),
    "release": AuditVerb("released the lock on"),
    "end": AuditVerb("ended"),
    "dispatch": AuditVerb("dispatched what was left in"),
    "export": AuditVerb("exported", "entry"),
    "cancel": AuditVerb("cancelled", "job"),
    "recompute": AuditVerb("recomputed", "day"),
    "run": AuditVerb("asked to read"),
    "run now": AuditVerb("sent once"),
    "set": AuditVerb("set"),
    "undo": AuditVerb("took back"),
    "create": AuditVerb("created"),
    "declare": AuditVerb("declared"),
    "withdraw": AuditVerb("withdrew"),
    "remove": AuditVerb("removed"),
    "revoke": AuditVerb("revoked"),
    "start": AuditVerb("started"),
    "stop": AuditVerb("stopped"),
    "scale": AuditVerb("scaled"),
    "pause": AuditVerb("paused"),
    "resume": AuditVerb("resumed"),
    "restart": AuditVerb("restarted"),
    "acknowledge": AuditVerb("acknowledged"),
    "give up": AuditVerb("gave up"),
    "reveal": AuditVerb("revealed"),
    "hide": AuditVerb("hid again"),
    "open": AuditVerb("opened with masked parts shown", "message"),
    "send": AuditVerb("sent"),
    "sign in": AuditVerb("signed in as"),
    "change password": AuditVerb("changed the password of"),
}


def past(verb: str) -> str:
    """An entry of an older version may have a retired verb: it is shown unchanged."""
    return ACTS.get(verb, AuditVerb(verb)).past


def counts(verb: str) -> str:
    """The noun that its entry counts, or "" for a single thing."""
    return ACTS.get(verb, AuditVerb(verb)).counts
