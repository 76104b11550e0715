"""Number of changes between the event loop and a thread per page: each makes both wait."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator

ASKED = {"http_version": "1.1", "method": "GET", "path": "/healthz", "query_string": b""}
SCOPE = {"type": "http", **ASKED, "headers": [(b"host", b"testserver")]}
SIGNALS_AND_PAGE = 4  # signal receivers for begin and end of a request, the page, and closing the response


@pytest.mark.filterwarnings("ignore:No directory")  # static files are collected at start-up, not by tests
async def test_middleware_and_page_are_one_visit_to_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    from pgqueue_admin.config.asgi import application

    visits, submit = [], ThreadPoolExecutor.submit

    def counted(self: ThreadPoolExecutor, *given: Any, **options: Any) -> Any:
        visits.append(given)
        return submit(self, *given, **options)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)
    talk = ApplicationCommunicator(application, SCOPE)
    await talk.send_input({"type": "http.request", "body": b""})
    assert (await talk.receive_output(timeout=60))["status"] == 200
    await talk.receive_output(timeout=60)
    await talk.wait(timeout=60)
    assert 0 < len(visits) <= SIGNALS_AND_PAGE
