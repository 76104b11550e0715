"""What people do, in the past tense, and what is counted of it: the one table of all verbs of the audit."""

from typing import NamedTuple


class Act(NamedTuple):
    past: str
    counts: str = ""  # one of what it was done to, where there may be many


ACTS = {
    "retry": Act("retried", "message"),
    "discard": Act("discarded", "message"),
    "restore": Act("restored", "message"),
    "move out": Act("moved out", "message"),
    "cancel": Act("cancelled", "job"),
    "recompute": Act("recomputed", "day"),
    "run": Act("asked to read"),
    "set": Act("set"),
    "undo": Act("took back"),
    "create": Act("created"),
    "declare": Act("declared"),
    "withdraw": Act("withdrew"),
    "start": Act("started"),
    "stop": Act("stopped"),
    "scale": Act("scaled"),
    "pause": Act("paused"),
    "resume": Act("resumed"),
    "restart": Act("restarted"),
    "acknowledge": Act("acknowledged"),
    "give up": Act("gave up"),
    "send": Act("sent"),
    "sign in": Act("signed in as"),
    "change password": Act("changed the password of"),
}


def past(verb: str) -> str:
    """An entry of an older version may have a verb that is written no more: it stays as it is."""
    return ACTS.get(verb, Act(verb)).past


def counts(verb: str) -> str:
    """What its entry counts, "" where it is one thing."""
    return ACTS.get(verb, Act(verb)).counts
