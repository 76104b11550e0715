"""How an act answers: a sentence that stays until the next page, the ways on and back, and a 303 to the page before."""

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
    """A link in an answer; with ``fields`` a button that posts them, and then leads back to this page."""

    word: str
    url: str
    fields: Mapping[str, str] | None = None


class Said(NamedTuple):
    """What an act answers when it was done."""

    sentence: str
    ways: tuple[Way, ...] = ()


class SeeOther(HttpResponseRedirect):
    status_code = 303


def back(request: HttpRequest, otherwise: str = "overview") -> HttpResponse:
    """To ``next``, filter and cursor kept; else to a page, by its name or address."""
    return SeeOther(came_from(request) or resolve_url(otherwise))


def pressed_on(request: HttpRequest) -> str:
    """The page to go back to where an act could not be done."""
    return came_from(request) or page_before(request) or reverse("overview")


def came_from(request: HttpRequest) -> str:
    """``next`` where it is an address of ours, else nothing: no other host, and nothing that runs."""
    wanted = request.POST.get("next", "")
    return wanted if _ours(request, wanted) and wanted.startswith("/") else ""


def page_before(request: HttpRequest) -> str:
    """The page of ours that the browser says this was pressed on, else nothing."""
    said = request.headers.get("Referer", "")
    if not said or not _ours(request, said):
        return ""
    parts = urlsplit(said)
    place = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return place if _ours(request, place) else ""  # two slashes at its beginning would name another host


def _ours(request: HttpRequest, url: str) -> bool:
    here, secure = {request.get_host()}, request.is_secure()
    return url_has_allowed_host_and_scheme(url, allowed_hosts=here, require_https=secure)


def reason(request: HttpRequest) -> str:
    """What the person wrote for the audit."""
    return confirmation.reason(request.POST.get("reason", ""))


def form_key(request: HttpRequest) -> str:
    """Of a form that makes a new message: by it a second press makes no other one. Empty: who sent it has none."""
    return sent_forms.key(request.POST.get("form"))


def next_form_key(request: HttpRequest) -> str:
    """Of the form that is shown: a new one, or again the one that was sent and refused."""
    return form_key(request) or sent_forms.new_key()


def done(request: HttpRequest, sentence: str, *ways: Way) -> None:
    """``ways`` to what came of it, and back to how it was."""
    messages.success(request, sentence, extra_tags=" ".join(["good", *_packed(ways)]))


def ways(tags: str) -> list[Way]:
    """Those that an answer was given, out of the tags that it was kept with."""
    packed = next((tag for tag in tags.split() if tag.startswith(_WAYS)), "")
    return [Way(*each) for each in json.loads(base64.urlsafe_b64decode(packed.removeprefix(_WAYS)))] if packed else []


def _packed(given: Sequence[Way]) -> list[str]:
    """As one word: a message is kept as its text and its tags, whose text Django admin shows, too."""
    ways = json.dumps(list(given), separators=(",", ":"))
    return [f"{_WAYS}{base64.urlsafe_b64encode(ways.encode()).decode()}"] if given else []


def refused(request: HttpRequest, sentence: str) -> None:
    """What did not happen comes first in the sentence."""
    messages.warning(request, sentence, extra_tags="warn")


def failed(request: HttpRequest, sentence: str) -> None:
    messages.error(request, sentence, extra_tags="crit")
