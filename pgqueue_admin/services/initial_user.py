"""Creates the first person who can sign in."""

import secrets
from typing import NamedTuple

from django.contrib.auth import get_user_model


class Login(NamedTuple):
    name: str
    password: str


def first_login(name: str = "admin") -> Login | None:
    """Create a superuser with a random password if nobody can sign in yet; None otherwise."""
    people = get_user_model()._default_manager
    if people.exists():
        return None
    login = Login(name, secrets.token_urlsafe(12))
    people.create_superuser(username=login.name, password=login.password)
    return login
