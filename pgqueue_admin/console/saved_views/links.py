"""The views of a page, for its filter line, and where its present address is saved as another."""

from typing import NamedTuple

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from pgqueue_admin.models import SavedView
from pgqueue_admin.services import saved_views


class ViewLinks(NamedTuple):
    """``views``: each with whether the page stands at it now. ``save``: an address."""

    views: list[tuple[SavedView, bool]]
    save: str


def of(request: HttpRequest, page: str) -> ViewLinks:
    here = _here(request, page)
    found = [(view, view.query == here) for view in saved_views.visible(request.user).filter(page=page)]
    return ViewLinks(found, _saving(page, here))


def saving(request: HttpRequest, page: str) -> str:
    """For a page that has no room for its views."""
    return _saving(page, _here(request, page))


def _here(request: HttpRequest, page: str) -> str:
    return saved_views.cleaned(page, request.META.get("QUERY_STRING", ""))


def _saving(page: str, here: str) -> str:
    return f"{reverse('views')}?{urlencode({'of': page, 'query': here})}"
