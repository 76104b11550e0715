"""Answers of actions: a sentence shown until the next page, links onward and back, and a 303 to the previous page."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from pgqueue_admin.services import sent_forms
from pgqueue_admin.services.operations import confirmation

_WAYS = "ways-"
NO_SUCH_CHANGE = "Nothing was changed: that change does not exist, or belongs to another endpoint or queue."


class Way(NamedTuple):
    """A link in an answer; with ``fields``, a button that posts them and returns to this page."""

    word: str
    url: str
    fields: Mapping[str, str] | None = None


class Said(NamedTuple):
    """The answer of a completed action."""

    sentence: str
    ways: tuple[Way, ...] = ()


class SeeOther(HttpResponseRedirect):
    status_code = 303


def back(request: HttpRequest, otherwise: str = "overview") -> HttpResponse:
    """Redirect to ``next``, with filter and cursor kept; otherwise to a page, by name or address."""
    return SeeOther(came_from(request) or resolve_url(otherwise))


def pressed_on(request: HttpRequest) -> str:
    """The page to return to if an action could not be done."""
    return came_from(request) or page_before(request) or reverse("overview")


def came_from(request: HttpRequest) -> str:
    """``next`` if it is a path of this console, else "": no other host and no script."""
    wanted = request.POST.get("next", "")
    return wanted if _ours(request, wanted) and wanted.startswith("/") else ""


def page_before(request: HttpRequest) -> str:
    """The page of this console that the Referer names, else ""."""
    said = request.headers.get("Referer", "")
    if not said or not _ours(request, said):
        return ""
    parts = urlsplit(said)
    place = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return place if _ours(request, place) else ""  # two leading slashes would name another host


def _ours(request: HttpRequest, url: str) -> bool:
    here, secure = {request.get_host()}, request.is_secure()
    return url_has_allowed_host_and_scheme(url, allowed_hosts=here, require_https=secure)


def reason(request: HttpRequest) -> str:
    """The reason that the person typed for the audit."""
    return confirmation.reason(request.POST.get("reason", ""))


def form_key(request: HttpRequest) -> str:
    """The key of a form that creates a message: submitted twice, it creates one. Empty: the sender has none."""
    return sent_forms.key(request.POST.get("form"))


def next_form_key(request: HttpRequest) -> str:
    """The key of the form to show: a new one, or the same one if the form was refused."""
    return form_key(request) or sent_forms.new_key()


def done(request: HttpRequest, sentence: str, *ways: Way) -> None:
    """``ways`` are links to the result and to undo the action."""
    messages.success(request, sentence, extra_tags=" ".join(["good", *_packed(ways)]))


def ways(tags: str) -> list[Way]:
    """The links of an answer, unpacked from the tags of its message."""
    packed = next((tag for tag in tags.split() if tag.startswith(_WAYS)), "")
    return [Way(*each) for each in json.loads(base64.urlsafe_b64decode(packed.removeprefix(_WAYS)))] if packed else []


def _packed(given: Sequence[Way]) -> list[str]:
    """Pack links into one tag. A message stores only text and tags, and Django admin shows its text too."""
    ways = json.dumps(list(given), separators=(",", ":"))
    return [f"{_WAYS}{base64.urlsafe_b64encode(ways.encode()).decode()}"] if given else []


def refused(request: HttpRequest, sentence: str) -> None:
    """The sentence begins with what was not done."""
    messages.warning(request, sentence, extra_tags="warn")


def failed(request: HttpRequest, sentence: str) -> None:
    messages.error(request, sentence, extra_tags="crit")
