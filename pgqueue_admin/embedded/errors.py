"""Errors of servers that we start ourselves, in words an operator can act on."""


class ServerFailed(Exception):
    """A server could not be started; the message says why and what to do."""
