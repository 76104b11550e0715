"""What happened to this order, and where is it now? All messages of one conversation, from every source."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import navigation, query_errors
from pgqueue_admin.console.conversations import sources
from pgqueue_admin.console.conversations.rows import ConversationPage
from pgqueue_admin.console.conversations.sources import FoundConversation, SourceCoverage
from pgqueue_admin.formatting.conversations import conversation
from pgqueue_admin.formatting.conversations.sighting import SightingSource
from pgqueue_admin.models import database_clock
from pgqueue_admin.services.operations import queries

LONGEST = 2_000  # characters of an id


@require_safe
def page(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """``m``: any id of the message whose story comes first; ``history``: also search the files of history.

    A page with scripts requests itself again with history, which takes seconds; without scripts, it has a link.
    """
    navigation.stands_under(request, "archive")
    asked_for, now = _clean(request.GET.get("m", "")), database_clock.now()
    conversation_id = _clean(conversation_id)
    found, trouble = query_errors.read(
        lambda connection: sources.in_database(connection, conversation_id, asked_for, now)
    )
    found = found or FoundConversation(focus={asked_for} if asked_for else set())
    for database in sources.beside():
        sources.add_looked_at(found, database, conversation_id, asked_for, now)
    absent = sources.history_is_there()
    looks = "history" in request.GET and not absent
    if looks:
        known = conversation.build(found.seen)
        sources.add_history(found, conversation_id, (known.begins(), known.ends()), now)
    elif absent:
        found.covered.append(SourceCoverage(SightingSource.HISTORY, None, absent))
    about = {
        "conversation_id": conversation_id,
        "page": ConversationPage(found, now),
        "trouble": trouble,
        "asks_history": not looks and not absent,
        "started_here": queries.started_here(act.operation for seen in found.seen for act in seen.acts),
    }
    return render(request, "pgqueue_admin/conversations/page.html", about)


def _clean(said: str) -> str:
    """Clean a parameter. Lone surrogates are replaced: no readable header holds one."""
    return said.strip()[:LONGEST].encode("utf-8", "replace").decode()


urlpatterns = [path("conversations/<name:conversation_id>/", page, name="conversation")]
