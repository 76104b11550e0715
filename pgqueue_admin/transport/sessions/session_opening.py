"""Opens an endpoint's sessions, by purpose and answer timeout."""

from typing import Any

from pgqueue_admin.dialects import Connection, Dialect
from pgqueue_admin.dialects.errors import SessionsShared

ANSWER_SECONDS = 30.0  # as the original; what has no answer by then is said, not waited for in silence
_SERVERS_SHARE = 5 / 6  # of it: where no handler asks the server itself ends what is too slow, and says why


class Opening:
    """Each raises DatabaseDown."""

    def __init__(self, dialect: Dialect, dsn: str, name: str, answer_seconds: float):
        self._dialect, self._dsn, self._endpoint, self._name = dialect, dsn, name, f"pgqueue {name}"
        self._answer_seconds = answer_seconds

    def of(self, part: str) -> "Opening":
        """Of a part in which no handler ever asks: its sessions say so, on the server and in the words of a lock."""
        return Opening(self._dialect, self._dsn, f"{self._endpoint[:40]} {part}", self._answer_seconds)

    def insist_on_its_own(self) -> None:
        """Raises SessionsShared, and DatabaseDown."""
        if self._dialect.shares_sessions(self._dsn):
            raise SessionsShared

    def long(self, **options: Any) -> Connection:
        """For what may take as long as it takes."""
        return self._dialect.connect(self._dsn, application_name=self._name, **options)

    def short(self, **options: Any) -> Connection:
        """Each statement of the engine's is short in it, and without an answer the session is given up."""
        return self.long(answer_seconds=self._answer_seconds, **options)

    def listening(self, channel: str) -> Connection:
        """As ``short``, with the channel in its name: what a session listens to no other one is told."""
        named = f"{self._name[:40]} on {channel}"  # the server keeps 63 bytes of it
        return self._dialect.connect(self._dsn, application_name=named, answer_seconds=self._answer_seconds)

    def ours(self) -> Connection:
        """As ``short``, where no handler asks and nothing large is sent: the server, too, ends what is too slow."""
        return self.short(statement_timeout=self._answer_seconds * _SERVERS_SHARE)
