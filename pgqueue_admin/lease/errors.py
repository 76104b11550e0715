"""What can be wrong with a message of the lease queue."""


class MessageRefused(ValueError):
    """It cannot be published: it is no JSON, or none that jsonb takes."""


class MessageUnreadable(ValueError):
    """It is JSON to the database, and not to Python: too deep, or a number of too many digits."""


class Rejected(Exception):
    """Raised by a handler: the message can never be handled. It ends as *rejected*, without a retry."""
