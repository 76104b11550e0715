"""Which schemas hold queues that nobody watches? Counted by the catalog, apart from the pages that say so."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import trouble
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.discovery import Unwatched
from pgqueue_admin.records.source import source
from pgqueue_admin.wording import visible
from pgqueue_admin.wording.figures import counted, integer

NAMED = 5  # schemas, in the sentence


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """By itself, or as the sentence that Queues and Settings load."""
    watched = source().schemas
    found, problem = trouble.read(lambda connection: discovery.unwatched(connection, watched))
    schemas = found or []
    about = {
        "watched": watched,
        "found": schemas,
        "more": f"{integer(sum(each.tables for each in schemas))} more",
        "where": _where(schemas),
        "wanted": ",".join([*watched, *(each.schema for each in schemas)]),
        "trouble": problem,
    }
    which = "part" if "HX-Request" in request.headers else "page"
    return render(request, f"pgqueue_admin/unwatched/{which}.html", about)


def _where(found: Sequence[Unwatched]) -> str:
    """``ops (12), billing (4) and 3 other schemas``."""
    named = [f"{visible.plain(each.schema)} ({integer(each.tables)})" for each in found[:NAMED]]
    others = [counted(len(found) - NAMED, "other schema")] if len(found) > NAMED else []
    return " and ".join(filter(None, [", ".join([*named, *others][:-1]), *[*named, *others][-1:]]))


urlpatterns = [path("queues/unwatched/", page, name="unwatched")]
