"""What can go wrong with a database, in words an operator can act on.

The first line of each docstring is the sentence a person is shown; the driver's own words follow it.
"""


class DatabaseError(Exception):
    """The database refused the statement."""

    def __init__(self, detail: str = "", sqlstate: str | None = None):
        self.detail = detail.strip()
        self.sqlstate = sqlstate
        super().__init__(f"{self.sentence} {self.detail}".strip())

    @property
    def sentence(self) -> str:
        return (type(self).__doc__ or "").splitlines()[0]


class DatabaseDown(DatabaseError):
    """The database does not answer."""


class NoAnswer(DatabaseDown):
    """The database gives no answer."""

    def __init__(self, detail: str = "", sqlstate: str | None = None, seconds: float = 0.0):
        """``seconds``: for how long none had come when the session was given up."""
        super().__init__(detail, sqlstate)
        self.seconds = seconds


class SessionsShared(DatabaseError):
    """The address leads to a pooler in transaction mode, where sessions are not one's own: use its session mode."""


class UrlUnreadable(DatabaseError):
    """The URL of the database cannot be read: in its parts each % is written as %25, @ as %40, and / as %2F."""


class Busy(DatabaseError):
    """Too many sessions read this already: try again in a moment."""


class TableMissing(DatabaseError):
    """The table is gone."""


class TableChanged(DatabaseError):
    """The table is no longer what it was."""


class EngineTablesOlder(TableChanged):
    """The engine's tables are of a version before this program: run manage.py engine_schema."""


class NameNotFound(DatabaseError):
    """A trigger of the table, or a function it calls, names something that is not on our session's search path."""


class SchemaMissing(DatabaseError):
    """The schema does not exist."""


class NotPermitted(DatabaseError):
    """The database role may not do this."""


class NotLookedInto(NotPermitted):
    """Reading this table would run another user's code."""


class ReadOnly(DatabaseError):
    """The database takes no writes now."""


class ServerTooOld(DatabaseError):
    """The database server is of a version that cannot do this."""


class SnapshotNotAllowed(DatabaseError):
    """The database allows no isolation snapshot: ALTER DATABASE … SET ALLOW_SNAPSHOT_ISOLATION ON, or use another."""


class TimedOut(DatabaseError):
    """The database was too slow and the statement was stopped."""


class Locked(TimedOut):
    """Another session holds a lock that this waited for."""


class TransactionTooLong(DatabaseError):
    """The server ended the session because its transaction took longer than this role or database allows."""


class Deadlock(DatabaseError):
    """Two transactions waited for each other and this one was rolled back; it can be tried again."""


class AlreadyExists(DatabaseError):
    """It exists already."""


class RowsDropped(DatabaseError):
    """A trigger, a rule or a policy of the table left rows out."""


class TransactionEndedByHandler(DatabaseError):
    """A handler ended the transaction by commit or rollback."""


class NoSuchBranch(DatabaseError):
    """Nothing is prepared under this name, or the session that prepared it goes on."""


class NotifyCannotBePrepared(DatabaseError):
    """A transaction that executed NOTIFY or LISTEN cannot be prepared: write no table with such a trigger."""


class SessionClosedByHandler(TransactionEndedByHandler):
    """Somebody closed the session inside its transaction, or left an answer in it that was not read to the end."""


class DriverMissing(ValueError):
    """The database's driver is not installed."""


class AddressUnreadable(ValueError):
    """The queue address cannot be read."""
