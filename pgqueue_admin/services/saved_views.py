"""Saved views: addresses of lists under a name, private or shared. Shared ones are audited in the same transaction."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.text import slugify

from pgqueue_admin.models import AuditEntry, DefaultView, SavedView
from pgqueue_admin.models.saved_view import LONGEST_NAME, LONGEST_QUERY
from pgqueue_admin.services import queue_access
from pgqueue_admin.services.permissions import Refusal, name_of, refusal_for

KEPT: dict[str, Sequence[str]] = {  # parameters of a page's address; cursors and windows are momentary
    "archive": ("q", "sort", "facets", "cols"),
    "queues": ("q", "sort", "open"),
    "failures": ("q", "by", "state", "owner"),
    "audit": ("q", "facets"),
}
MOST = 50  # of a person, and as many shared ones


class ViewRefused(Exception):
    """What was not done and why, as a sentence."""


def visible(person: Any) -> QuerySet[SavedView]:
    """The person's own views, and shared ones. These may name hidden queues: people of some queues do not get them."""
    own = Q(person=person)
    return SavedView.objects.filter(own if queue_access.of(person) else own | Q(is_shared=True))


def cleaned(page: str, query: str) -> str:
    """Return the part of an address that is saved; in one order, so that equal views have equal texts."""
    given = QueryDict(query.replace("\0", ""))
    return urlencode([(name, value) for name in KEPT[page] for value in _values(given, name)])


def _values(given: QueryDict, name: str) -> list[str]:
    """Return the last value of a repeated name, as pages read it; of columns all."""
    return given.getlist(name) if name == "cols" else given.getlist(name)[-1:]


def refusal(person: Any, view: SavedView) -> Refusal | None:
    """Why this person may not change a view that they see; None: they may."""
    return refusal_for(person, "share") if view.is_shared else None


def save(person: Any, page: str, query: str, name: str, *, shared: bool, origin: str) -> SavedView:
    """Raises ViewRefused."""
    if shared:
        _refuse(refusal_for(person, "share"), "saved")
    if page not in KEPT:
        raise ViewRefused("Nothing was saved: this page has no views.")
    kept, named = cleaned(page, query), _named(name, "saved")
    if len(kept) > LONGEST_QUERY:
        raise ViewRefused(f"Nothing was saved: its address is longer than {LONGEST_QUERY:,} letters.")
    with _without_another("saved", named):
        of_kind = SavedView.objects.filter(is_shared=shared)
        if (of_kind if shared else of_kind.filter(person=person)).count() >= MOST:
            whose = "are shared" if shared else "are yours"
            raise ViewRefused(f"Nothing was saved: {MOST} views {whose}, which is the most. Remove one first.")
        about = {"person": person, "owner": name_of(person), "is_shared": shared}
        view = SavedView.objects.create(slug=_slug(named, shared), name=named, page=page, query=kept, **about)
        _note(view, "create", person, origin, after={"address": view.slug, "page": page, "query": kept})
    return view


def rename(person: Any, view: SavedView, name: str, origin: str) -> None:
    """Rename a view. Its address stays, as it may have been passed on. Raises ViewRefused."""
    _refuse(refusal(person, view), "renamed")
    before, named = view.name, _named(name, "renamed")
    with _without_another("renamed", named):
        view.name = named
        view.save(update_fields=["name"])
        _note(view, "set", person, origin, before={"name": before}, after={"name": named})


def remove(person: Any, view: SavedView, origin: str) -> None:
    """Raises ViewRefused."""
    _refuse(refusal(person, view), "removed")
    with transaction.atomic():
        _note(view, "remove", person, origin, before={"page": view.page, "query": view.query})
        view.delete()


def default_of(person: Any, page: str) -> SavedView | None:
    """Return the view that this person's list opens with; None: no view, also if they may not see it any more."""
    return visible(person).filter(page=page, pk__in=DefaultView.objects.filter(person=person).values("view")).first()


def defaults_of(person: Any) -> set[int]:
    """Return the keys of the views that this person's lists open with."""
    return set(DefaultView.objects.filter(person=person).values_list("view", flat=True))


def open_with(person: Any, view: SavedView) -> None:
    """Open the list with this view from now on; it changes nothing for other people."""
    DefaultView.objects.update_or_create(person=person, page=view.page, defaults={"view": view})


def open_without(person: Any, page: str) -> None:
    DefaultView.objects.filter(person=person, page=page).delete()


def _note(view: SavedView, verb: str, person: Any, origin: str, **about: Any) -> None:
    """Audit a change of a shared view; private ones are not audited."""
    if view.is_shared:
        AuditEntry.objects.create(
            who=name_of(person), verb=verb, noun="view", subject=view.name, origin=origin, **about
        )


def _refuse(why: Refusal | None, what: str) -> None:
    if why:
        raise ViewRefused(f"Nothing was {what}: sharing views {why}.")


def _named(name: str, what: str) -> str:
    said = " ".join(name.replace("\0", "").split())
    if not said or len(said) > LONGEST_NAME or not said.isprintable():
        raise ViewRefused(f"Nothing was {what}: a name has 1 to {LONGEST_NAME} printable letters.")
    return said


def _slug(name: str, shared: bool) -> str:
    """Make a slug of the name. Equal slugs of shared views are numbered; private ones end at random, as a number would
    reveal others' views.
    """
    start = slugify(name)[:LONGEST_NAME] or "view"
    if not shared:
        return f"{start}-{secrets.token_hex(4)}"
    alike = SavedView.objects.filter(is_shared=True, slug__startswith=start)
    taken = set(alike.values_list("slug", flat=True))
    numbered = (f"{start}-{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (start, *numbered) if each not in taken)


@contextmanager
def _without_another(what: str, name: str) -> Iterator[None]:
    """Open a transaction that refuses a duplicate name."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError:
        raise ViewRefused(f"Nothing was {what}: there is a view named “{name}” already.") from None
