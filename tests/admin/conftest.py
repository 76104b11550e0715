"""Signed-in test clients and the recorded failures in the archive."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.archived_messages import OPERATOR, person

SignIn = Callable[..., Client]
VIEWER = ("view_archivedmessage", "view_schedule", "view_auditentry", "view_endpoint", "view_operation")


@pytest.fixture
def sign_in(archived_console: str) -> SignIn:
    """``sign_in("ana")`` is an operator; ``sign_in("viewer", VIEWER)`` has read-only rights."""

    def sign_in(name: str, permissions: tuple[str, ...] = OPERATOR, **more: object) -> Client:
        client = Client()
        client.force_login(person(name, *permissions, **{"is_staff": True, **more}))
        return client

    return sign_in
