"""Texts before and after an act on selected messages of the lease queue. Pure."""

from typing import NamedTuple

from pgqueue_admin.formatting.numbers import pluralize


class LeaseActWords(NamedTuple):
    """``button`` takes the count, ``question`` the count with the noun. ``then``: what happens to each message."""

    button: str
    question: str
    then: str
    result: str


_END = "it is deleted here and archived as {}, from where it can be retried; a holder at work ends it no more"
WORDS = {
    "release": LeaseActWords(
        "Release {}",
        "Release the locks on {}",
        "a worker may claim it at once, and does it again where its holder is still at work",
        "The locks on {} are off: workers may claim them.",
    ),
    "failed": LeaseActWords(
        "End {} as failed", "End {} as failed", _END.format("failed"), "{} ended as failed. Retry from the archive."
    ),
    "rejected": LeaseActWords(
        "End {} as rejected",
        "End {} as rejected",
        f"{_END.format('rejected')}. Rejected means: it can never be handled",
        "{} ended as rejected. Retry from the archive.",
    ),
}


def button(name: str, count: int) -> str:
    """``Release 3``, ``End 1 as failed``."""
    return WORDS[name].button.format(f"{count:,}")


def question(name: str, count: int, queue: str, environment: str) -> str:
    """``Release the locks on 3 messages of message in production?``"""
    asked = WORDS[name].question.format(f"{pluralize(count, 'message')} of {queue}")
    return f"{asked} in {environment or 'unnamed'}?"


def keep(count: int) -> str:
    """Label of the link that does nothing."""
    return f"Leave {'it' if count == 1 else 'them'} there"


def then(name: str) -> str:
    return WORDS[name].then


def result(name: str, count: int) -> str:
    return WORDS[name].result.format(pluralize(count, "message"))
