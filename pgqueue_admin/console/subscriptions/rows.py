"""Subscriptions for their page: by event, with what is wrong with each, and the opening sentence."""

from collections.abc import Iterable
from dataclasses import dataclass

from pgqueue_admin.console import filter_syntax
from pgqueue_admin.dialects import database_alias
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.monitor.subscriptions import EVERYTHING, SubscriptionRow, SubscriptionTables
from pgqueue_admin.transport.wire.type_names import short_type

FIELDS = ("type", "endpoint", "address")


@dataclass(frozen=True, slots=True)
class SubscriptionEventRow:
    """``twins``: other spellings of its address that differ only in case, so they name another table."""

    of: SubscriptionRow
    twins: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        return short_type(self.of.topic)

    @property
    def is_catch_all(self) -> bool:
        return self.of.topic == EVERYTHING

    @property
    def leads_nowhere(self) -> bool:
        return not self.of.is_there

    @property
    def elsewhere(self) -> str:
        """Alias of the other database that holds it and is only looked at; empty for the first database."""
        return database_alias.alias_of(self.of.table)

    @property
    def table(self) -> str:
        """The table that holds the row, as a statement names it."""
        return postgresql().canonical(self.of.table)


def rows(found: SubscriptionTables) -> list[SubscriptionEventRow]:
    """Rows: those to a queue that does not exist first, then by event and endpoint."""
    spelled: dict[str, set[str]] = {}
    for each in found.rows:
        spelled.setdefault(each.queueaddress.lower(), set()).add(each.queueaddress)
    made = [
        SubscriptionEventRow(each, tuple(sorted(spelled[each.queueaddress.lower()] - {each.queueaddress})))
        for each in found.rows
    ]
    return sorted(made, key=lambda row: (not row.leads_nowhere, row.of.topic, row.of.endpoint))


def matching(shown: Iterable[SubscriptionEventRow], wanted: filter_syntax.FilterTerms) -> list[SubscriptionEventRow]:
    return [row for row in shown if _holds(row, wanted)]


def _holds(row: SubscriptionEventRow, wanted: filter_syntax.FilterTerms) -> bool:
    said = {"type": row.of.topic.lower(), "endpoint": row.of.endpoint.lower(), "address": row.of.queueaddress.lower()}
    words = all(any(word in text for text in said.values()) for word in wanted.words)
    return words and all(value in said[name] for name, value in wanted.fields)


def verdict(shown: list[SubscriptionEventRow], *, of_some: bool = False) -> tuple[str, str]:
    """State and sentence. ``of_some``: only queues that this person may see are shown."""
    if not shown:
        return "good", "No copies of an event go to your queues" if of_some else "Nobody subscribes to an event"
    lost = sum(row.leads_nowhere for row in shown)
    if lost:
        lead = "leads" if lost == 1 else "lead"
        return "crit", f"{pluralize(lost, 'subscription')} {lead} to a queue that does not exist"
    endpoints = len({row.of.endpoint for row in shown})
    events = len({row.of.topic for row in shown})
    who = pluralize(endpoints, "endpoint subscribes", "endpoints subscribe")
    return "good", f"{who} to {pluralize(events, 'event')}; every queue is there"
