"""One message's share of a batch: what it writes is undone alone when it fails."""

from contextlib import ExitStack

from pgqueue_admin.dialects import Connection


class Share(ExitStack):
    """A savepoint from the first use of the session on: a message that writes nothing costs no round trip."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = False

    def begin(self, session: Connection) -> None:
        if not self._begun:
            self._begun = True
            self.enter_context(session.transaction())
