"""The archive's search: what a person types, as a Filter, or in words why it is none. A wrong term never widens it."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from string import hexdigits
from typing import Any

from pgqueue_admin.archive import search_query
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_query import LAST
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting.fingerprint import DIGITS
from pgqueue_admin.models import queue_lookup

DEAD = "state:dead"
STATES = ("dead", "retried", "succeeded", "dead_again", "discarded")
RESULTS = ("success", "unsuccessful", "failed", "rejected", "lock_expired")
KINDS = ("message", "transport", "control", "lease")
MOST_WORDS = 20
_NONE = '=""'
_PHRASE = re.compile(r'"((?:[^"]|"")*)"')
_TERM = re.compile(r'(?P<not>-?)(?:(?P<field>[A-Za-z_.]+):)?(?P<value>(?:"[^"]*"?|[^\s"])*)')


class SearchSyntaxError(ValueError):
    """``wrong`` is the part of the query that cannot be read."""

    def __init__(self, wrong: str, why: str):
        self.wrong, self.why = wrong, why
        super().__init__(f"{wrong}: {why}")


@dataclass(frozen=True)
class ArchiveSearch:
    """``text`` as typed. With an ``error``, nothing is searched. Words without a field are of the error's message."""

    text: str
    filter: ArchiveFilter = field(default_factory=ArchiveFilter)
    error: SearchSyntaxError | None = None

    @property
    def takes_whole_names(self) -> bool:
        """Whether a name was given that is compared as a whole, so that a part of it finds nothing."""
        asked = self.filter
        parse_int = (asked.type_is, asked.exception_is)
        return any((asked.queue, asked.type, asked.exception, asked.endpoint, asked.message_id, *parse_int))

    @property
    def without_state(self) -> str:
        """The same search over messages of every state."""
        return search_query.written(replace(self.filter, state=""))

    @property
    def reads_rows(self) -> bool:
        return self.filter.reads_rows

    @property
    def read_in(self) -> list[tuple[str, tuple[str, ...]]]:
        """What is looked for row by row, and in which part of each message."""
        asked = self.filter
        parts = (("error messages", asked.words), ("headers", asked.headers), ("bodies", asked.bodies))
        return [(part, texts) for part, texts in parts if texts]

    @property
    def not_read(self) -> str:
        """What a person might think was searched, too."""
        parts = [
            part for part, texts in (("bodies", self.filter.bodies), ("headers", self.filter.headers)) if not texts
        ]
        return f"{', '.join(parts)} and ids" if parts else "ids"

    @property
    def in_bodies(self) -> str:
        """The same search with its words looked for in the body."""
        return search_query.written(replace(self.filter, words=(), bodies=(*self.filter.bodies, *self.filter.words)))


def read(text: str | None) -> ArchiveSearch:
    """No query asks for what lies dead; an empty one asks for everything."""
    text = DEAD if text is None else text.strip().replace("\0", "")
    try:
        _refuse_too_many(text)
        return ArchiveSearch(text, _filter(_TERM.finditer(text)))
    except SearchSyntaxError as error:
        return ArchiveSearch(text, error=error)


def names_a_field(text: str) -> bool:
    """Whether it is a search rather than an id, which may have a colon in it, too."""
    return any((term["field"] or "").lower() in _READERS for term in _TERM.finditer(text))


def _refuse_too_many(text: str) -> None:
    """Each word is looked for in each message: a pasted page would keep the database busy for as long as it may be."""
    if (count := sum(1 for term in _TERM.finditer(text) if term[0])) > MOST_WORDS:
        raise SearchSyntaxError(
            f"{count} words", f"a search takes at most {MOST_WORDS}. Leave those that tell it apart, or quote a phrase."
        )


def _filter(typed: Iterable[re.Match[str]]) -> ArchiveFilter:
    found, given = ArchiveFilter(state=""), set[str]()
    for term in typed:
        if not term[0]:
            continue
        name = (term["field"] or "").lower()
        if name in given - _REPEATED:
            raise SearchSyntaxError(term[0], f"{name}: is there already, and every term must hold. Leave one of them.")
        given.add(name)
        found = _with(found, term, name)
    return found


def _with(found: ArchiveFilter, term: re.Match[str], name: str) -> ArchiveFilter:
    given = term["value"]
    value = given if name in _NAMED else _unquoted(given.removeprefix("=") if name in _WHOLE else given)
    if term["not"] and value:
        raise SearchSyntaxError(term[0], "Excluding with “-” is not supported. Remove the “-”.")
    if not name and term[0] in {"OR", "AND", "(", ")"}:
        raise SearchSyntaxError(term[0], "every term must hold; there is no OR yet.")
    if not name and not value:
        raise SearchSyntaxError(term[0], "there is no word in it. A phrase stands between two quotes.")
    if not name:
        return replace(found, words=(*found.words, value))
    if name not in _READERS:
        raise SearchSyntaxError(
            term[0], f"There is no field {name}:. Use one of {', '.join(f'{each}:' for each in _READERS)}."
        )
    if not value:
        raise SearchSyntaxError(term[0], f"put the value right after {name}: without a space.")
    return replace(found, **_READERS[name](found, value, term[0]))


def _unquoted(value: str) -> str:
    """A phrase loses its quotes, and one of two in it that follow each other; an address keeps those of its parts."""
    if phrase := _PHRASE.fullmatch(value):
        return phrase[1].replace('""', '"')
    return value.strip('"') if value.count('"') <= 2 and value.startswith('"') else value


def _one_of(field_name: str, allowed: tuple[str, ...]) -> Callable[[ArchiveFilter, str, str], dict[str, Any]]:
    def reader(_found: ArchiveFilter, value: str, term: str) -> dict[str, Any]:
        if value not in allowed:
            raise SearchSyntaxError(term, f"{value} is not one of {', '.join(allowed)}.")
        return {field_name: value}

    return reader


def _text(field_name: str) -> Callable[[ArchiveFilter, str, str], dict[str, Any]]:
    return lambda _found, value, _term: {field_name: value}


def _name(field_name: str) -> Callable[[ArchiveFilter, str, str], dict[str, Any]]:
    """``Boom``: whole, or its last part; ``=Boom``: this and no other; ``Boom*``: what begins so; ``=""``: none."""

    def reader(_found: ArchiveFilter, given: str, term: str) -> dict[str, Any]:
        how = "_is" if given.startswith("=") else "_from" if given.endswith("*") else ""
        value = _unquoted({"_is": given[1:], "_from": given[:-1], "": given}[how])
        if not value and given != _NONE:
            raise SearchSyntaxError(term, f"there is no name in it. What has none is found by {_NONE}.")
        return {field_name + how: value}

    return reader


def _one_more(field_name: str) -> Callable[[ArchiveFilter, str, str], dict[str, Any]]:
    return lambda found, value, _term: {field_name: (*getattr(found, field_name), value)}


def _operation(_found: ArchiveFilter, value: str, term: str) -> dict[str, Any]:
    """``418``: all of its set; ``418/last``: what nothing else was decided on since."""
    number = parse_int(value.removesuffix(LAST))
    if number is None:
        raise SearchSyntaxError(term, f"{value} is not the number of an operation.")
    return {"last_operation" if value.endswith(LAST) else "operation": number}


def _time(field_name: str) -> Callable[[ArchiveFilter, str, str], dict[str, Any]]:
    """Without a zone it is UTC, without a time the day's beginning. The database does not read every offset."""

    def reader(_found: ArchiveFilter, value: str, term: str) -> dict[str, Any]:
        try:
            found = datetime.fromisoformat(value)
            found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            raise SearchSyntaxError(term, "write a time as 2026-11-21T09:30Z, or a day as 2026-11-21.") from None
        return {field_name: found.isoformat()}

    return reader


def _id(_found: ArchiveFilter, value: str, term: str) -> dict[str, Any]:
    if value.isdecimal() and "=" not in term:
        raise SearchSyntaxError(term, "id: takes a message id; type an archive number into the box at the top.")
    return {"message_id": value}


def _queue(_found: ArchiveFilter, value: str, term: str) -> dict[str, Any]:
    try:
        return {"queue": queue_lookup.canonical(value)}
    except AddressUnreadable as error:
        raise SearchSyntaxError(term, str(error)) from error


def _fingerprint(_found: ArchiveFilter, value: str, term: str) -> dict[str, Any]:
    """Of which failure: as its page's address has it."""
    if len(value) != DIGITS or set(value) - set(hexdigits.lower()):
        raise SearchSyntaxError(term, f"a failure is named by {DIGITS} digits, as on its page under Failures.")
    return {"fingerprint": value}


_NAMED = {"type", "error"}  # a name may be asked for in several ways
_WHOLE = {"queue", "endpoint", "id", "fp"}  # these are whole anyhow, so that "=" says nothing more
_REPEATED = {"", "message", "headers", "body"}  # each must hold
_READERS: dict[str, Callable[[ArchiveFilter, str, str], dict[str, Any]]] = {
    "queue": _queue,
    "type": _name("type"),
    "error": _name("exception"),
    "message": _one_more("words"),
    "headers": _one_more("headers"),
    "body": _one_more("bodies"),
    "id": _id,
    "state": _one_of("state", STATES),
    "endpoint": _text("endpoint"),
    "fp": _fingerprint,
    "result": _one_of("result", RESULTS),
    "kind": _one_of("kind", KINDS),
    "op": _operation,
    "since": _time("since"),
    "until": _time("until"),
}
