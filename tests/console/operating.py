"""Steps of an act on many messages: choose, follow, start."""

from collections.abc import Iterable

from django.test import Client

from tests.console.pages import Answer, shown


def choose(client: Client, kind: str, ids: Iterable[int] = (), **more: str) -> Answer:
    return client.post("/operations/", {"act": kind, "id": list(ids), "next": "/archive/?q=state:dead", **more})


def follow(client: Client, response: Answer) -> str:
    assert response.status_code == 303
    return shown(client, response["Location"])


def start(client: Client, address: str, **given: str) -> Answer:
    return client.post(f"{address}start/", given)
