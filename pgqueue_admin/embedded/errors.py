"""What can go wrong with a server that we start ourselves, in words an operator can act on."""


class ServerFailed(Exception):
    """A server could not be started; the message says why and what next."""
