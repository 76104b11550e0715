"""Unwatched schemas that hold queues: counted in the catalog, apart from the pages that show them."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import query_errors
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.formatting.numbers import format_int, pluralize
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.discovery import Unwatched

NAMED = 5  # schemas, in the sentence


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """A page of its own, or the sentence that Queues and Settings load."""
    watched = queue_database().schemas
    found, problem = query_errors.read(lambda connection: discovery.unwatched(connection, watched))
    schemas = found or []
    about = {
        "watched": watched,
        "found": schemas,
        "more": f"{format_int(sum(each.tables for each in schemas))} more",
        "where": _where(schemas),
        "wanted": ",".join([*watched, *(each.schema for each in schemas)]),
        "trouble": problem,
    }
    which = "part" if "HX-Request" in request.headers else "page"
    return render(request, f"pgqueue_admin/unwatched/{which}.html", about)


def _where(found: Sequence[Unwatched]) -> str:
    """``ops (12), billing (4) and 3 other schemas``."""
    named = [f"{escape_invisible.plain(each.schema)} ({format_int(each.tables)})" for each in found[:NAMED]]
    others = [pluralize(len(found) - NAMED, "other schema")] if len(found) > NAMED else []
    return " and ".join(filter(None, [", ".join([*named, *others][:-1]), *[*named, *others][-1:]]))


urlpatterns = [path("queues/unwatched/", page, name="unwatched")]
