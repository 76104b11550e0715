"""Opens an endpoint's sessions, by purpose and answer timeout."""

from typing import Any

from pgqueue_admin.dialects import Connection, Dialect
from pgqueue_admin.dialects.errors import SessionsShared

ANSWER_SECONDS = 30.0  # as the original; a missing answer is then reported
_SERVERS_SHARE = 5 / 6  # of it: statement_timeout without handlers, so that the server cancels first, with a reason


class Opening:
    """Opens sessions. Each method raises DatabaseDown."""

    def __init__(self, dialect: Dialect, dsn: str, name: str, answer_seconds: float):
        self._dialect, self._dsn, self._endpoint, self._name = dialect, dsn, name, f"pgqueue {name}"
        self._answer_seconds = answer_seconds

    def of(self, part: str) -> "Opening":
        """For a part without handlers: its name is in application_name, and so in lock diagnostics."""
        return Opening(self._dialect, self._dsn, f"{self._endpoint[:40]} {part}", self._answer_seconds)

    def insist_on_its_own(self) -> None:
        """Refuse a pooler in transaction mode. Raises SessionsShared, and DatabaseDown."""
        if self._dialect.shares_sessions(self._dsn):
            raise SessionsShared

    def long(self, **options: Any) -> Connection:
        """A session without time limits."""
        return self._dialect.connect(self._dsn, application_name=self._name, **options)

    def short(self, **options: Any) -> Connection:
        """A session for short statements, closed after the answer timeout."""
        return self.long(answer_seconds=self._answer_seconds, **options)

    def listening(self, channel: str) -> Connection:
        """As ``short``, with the channel in its name: PostgreSQL shows no other session's channels."""
        named = f"{self._name[:40]} on {channel}"  # the server keeps 63 bytes of it
        return self._dialect.connect(self._dsn, application_name=named, answer_seconds=self._answer_seconds)

    def ours(self) -> Connection:
        """As ``short``, without handlers and large sends: the server has a statement timeout, too."""
        return self.short(statement_timeout=self._answer_seconds * _SERVERS_SHARE)
