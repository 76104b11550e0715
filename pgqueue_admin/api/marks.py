"""``POST /api/marks/``: a deployment posts a mark, which Overview shows among the changes."""

import json
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from pgqueue_admin.api import callers
from pgqueue_admin.services import marks
from pgqueue_admin.services.marks import MarkRefused, TooManyMarks

LONGEST_BODY = 8_192  # bytes
FIELDS = ("text", "at", "link")
NO_TOKEN = (
    "Nothing was marked. It needs Authorization: Bearer and a token that may post marks; manage.py api_token makes one."
)


@login_not_required
@csrf_exempt
@require_POST
def post(request: HttpRequest) -> JsonResponse:
    """Answer 201 with the mark; 400, 401, 413 and 429 say in a sentence why it is refused."""
    token = callers.holder(request, "marks")
    if token is None:
        answer = _refused(NO_TOKEN, 401)
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    body = request.read(LONGEST_BODY + 1)
    if len(body) > LONGEST_BODY:
        return _refused(f"Nothing was marked. A mark has at most {LONGEST_BODY:,} bytes.", 413)
    try:
        mark = marks.post(token, **_fields(body))
    except TooManyMarks as error:
        answer = _refused(f"Nothing was marked. {error}", 429)
        answer["Retry-After"] = "3600"
        return answer
    except MarkRefused as error:
        return _refused(f"Nothing was marked. {error}", 400)
    told = {"id": mark.pk, "at": mark.at.isoformat(), "who": mark.who, "text": mark.text, "link": mark.link}
    return JsonResponse(told, status=201)


def _fields(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise MarkRefused('It is no JSON object, such as {"text": "Sales 3.4.1"}.')
    if unknown := sorted(set(said) - set(FIELDS)):
        raise MarkRefused(f"{unknown[0][:60]!r}: there is no such field; there are {', '.join(FIELDS)}.")
    return {"text": None, **said}


def _refused(why: str, status: int) -> JsonResponse:
    return JsonResponse({"error": why}, status=status)


urlpatterns = [path("api/marks/", post, name="post_mark")]
