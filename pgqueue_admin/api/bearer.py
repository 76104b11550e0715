"""Whose token a request shows: ``Authorization: Bearer …``. A cookie says nothing: no page asks for its reader."""

from django.http import HttpRequest

from pgqueue_admin.models import ApiToken
from pgqueue_admin.services import api_tokens


def holder(request: HttpRequest, right: str) -> ApiToken | None:
    """None: it shows none, or one that is not good for this."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return api_tokens.holder(token.strip(), right) if kind.lower() == "bearer" and token else None
