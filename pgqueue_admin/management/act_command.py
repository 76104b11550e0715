"""Shared parts of commands that act: the name audited, the confirmation, the queue, the exit code."""

import getpass
import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import django.db
from django.core.management.base import CommandError

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseError
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.management.database_errors import describe
from pgqueue_admin.models import outage, queue_lookup
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.failure_groups import FailureActRefused
from pgqueue_admin.services.operations.errors import OperationRefused, OutcomeUnknown

NOT_ALL, WRONG, NOT_CONFIRMED, NO_DATABASE = 1, 2, 4, 5
EXIT_CODES = {
    0: "it was done, or listed",
    NOT_ALL: "some were skipped or failed, each with its reason",
    WRONG: "wrong arguments, or refused; nothing was done",
    NOT_CONFIRMED: "not confirmed; nothing was done",
    NO_DATABASE: "a database does not answer, or refuses; whether it was done is said",
}
_YES = ("y", "Y", "yes", "Yes")


def caller() -> str:
    """Return the account's name, or its number if it has none, as in a container with a numeric user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # which one depends on Python's version
        return f"uid {os.getuid()}"


def as_whom(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("--as", dest="who", default=caller(), help="Whose name is kept. Default: yours.")
    return parser


def named(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("--reason", default="", help="Why; kept in the audit.")
    return as_whom(parser)


def asking(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("--yes", action="store_true", help="Do not ask.")
    return named(parser)


def listing(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("--json", action="store_true", help="One JSON document, for programs.")
    return parser


def no_text(given: Iterable[Any]) -> str:
    """Why these arguments are refused; empty: they are valid. Bytes that are no UTF-8 arrive as surrogates."""
    for each in given:
        if isinstance(each, list) and (fault := no_text(each)):
            return fault
        if isinstance(each, str) and re.search("[\ud800-\udfff]", each):
            return f"{each!a} is no text: its bytes are not UTF-8."
    return ""


def line(*words: Any) -> str:
    """Format a line of a list: untrusted text breaks no line, reverses no text and sends the terminal no commands."""
    return escape_invisible.plain("  ".join(map(str, words)).replace("\n", " "))


def covered(looked_at: int, has_more: bool, place: str = "") -> str:
    """Say behind a search's count how far it looked, and at which ``place`` the next look begins."""
    said = f" Looked through {pluralize(looked_at, 'row')}"
    if not has_more:
        return f"{said}, which are all from there."
    return f"{said}; there are more{f': {place}' if place else ''}."


@contextmanager
def ending(options: dict[str, Any]) -> Iterator[None]:
    """Turn errors into sentences with exit codes. ``options``: of the command; checked to be text."""
    if fault := no_text(options.values()):
        raise CommandError(f"Nothing was done. {fault}", returncode=WRONG)
    try:
        yield
    except OutcomeUnknown as error:
        raise CommandError(str(error), returncode=NO_DATABASE) from error
    except (OperationRefused, FailureActRefused, AddressUnreadable) as error:
        raise CommandError(str(error), returncode=WRONG) from error
    except DatabaseError as error:
        raise CommandError(describe(error), returncode=NO_DATABASE) from error
    except django.db.Error as error:  # the console's own database
        said = f"The console's database {outage.describe(error)}. {error}".strip()
        raise CommandError(said, returncode=NO_DATABASE) from error


def confirmed(err: Any, question: str, yes: bool) -> None:
    """Ask on stderr: a program may read stdout."""
    if yes:
        return
    err.write(question)
    if sys.stdin.isatty():
        err.write("[y/N] ", ending="")
        err.flush()
        if sys.stdin.readline().strip() in _YES:
            return
    raise CommandError("Nothing was done. Confirm with y, or give --yes.", returncode=NOT_CONFIRMED)


def address_of(text: str) -> Address:
    """Parse ``Billing``, or ``"public"."Billing"``. Raises AddressUnreadable."""
    return queue_database().dialect.parse_address(queue_lookup.canonical(text))
