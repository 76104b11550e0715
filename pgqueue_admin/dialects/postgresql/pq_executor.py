"""Executes our statements through libpq: prepared, pipelined, at a third of the cost of psycopg's cursors.

psycopg still waits in the main thread (for Ctrl-C), and converts parameters and columns.
"""

import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.abc import PQGen
from psycopg.abc import Transformer as Values
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from pgqueue_admin.dialects.connection import Params, Row
from pgqueue_admin.dialects.postgresql import session_settings
from pgqueue_admin.dialects.postgresql.answer_limit import PatientConnection
from pgqueue_admin.dialects.postgresql.binary_copy import CopyIn
from pgqueue_admin.dialects.postgresql.query import Query

AUTO, BINARY = PyFormat.AUTO, PyFormat.BINARY
_FINE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
_BEGUN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
_UNKNOWN = "26000"
_NO_SAVEPOINT = "3B001"
_STALE = (_UNKNOWN, "0A000")  # it was deallocated; its table has changed
_NUMBERS = {int}
_RECENTLY = 0.01  # seconds in which no server ends a session as idle
_JUST_NOW = 0.002  # seconds in which a check for a closed session is not worth its cost

Maker = Callable[[Sequence[Any]], Row]

BEGIN, LOOK, COMMIT = (Query([sql.SQL(each)]) for each in ("begin", session_settings.BEGIN_READ_ONLY, "commit"))
LIMIT = Query([sql.SQL("select pg_catalog.set_config('statement_timeout', %(ms)s::int4::text, true)")])
_main = threading.main_thread().ident


class Answer(NamedTuple):
    """Result of a statement, with the interface of a cursor."""

    result: PGresult
    values: Values
    makers: dict[bytes, Maker]  # of prepared statements, whose columns stay the same
    name: bytes = b""

    @property
    def rowcount(self) -> int:
        return _touched(self.result)

    def fetchall(self) -> list[Row]:
        if not self.result.ntuples:
            return []
        self.values.set_pgresult(self.result)
        return self.values.load_rows(0, self.result.ntuples, self._maker())

    def fetchone(self) -> Row | None:
        rows = self.fetchall()
        return rows[0] if rows else None

    def _maker(self) -> Maker:
        maker = self.makers.get(self.name)
        if maker is None:
            maker = _maker(_columns(self.result))
            if self.name:
                self.makers[self.name] = maker
        return maker


class PqExecutor:
    """Executes the statements of one session. psycopg prepares none in it: it would deallocate ours with its own."""

    def __init__(self, raw: PatientConnection):
        raw.prepare_threshold = None
        self._raw = raw
        self._pg = raw.pgconn
        self._patience = raw.patience
        self._values: Values = Transformer(raw)
        self._names: dict[tuple[Query, Sequence[int]], bytes] = {}
        self._makers: dict[bytes, Maker] = {}
        self._prepared = 0
        self._heard = 0.0
        self._is_called_by_name = True
        self._begin = LOOK if raw.read_only else BEGIN
        self._begin_word = self._begin.numbered[0]

    def begin(self) -> None:
        """Begin a transaction. Raises psycopg.Error."""
        self.say(self._begin_word)

    def was_just_heard(self) -> bool:
        return self._pg.status == ConnStatus.OK and time.monotonic() < self._heard + _JUST_NOW

    def ask(self, query: Query, values: Params) -> Answer:
        """Execute a statement. Raises psycopg.Error."""
        bound = self._bound(query, values)
        if self._may_block():
            return self._answer([bound.run(self._pg)], bound.name)
        bound.send(self._pg)
        return self._answer(self._raw.wait(execute(self._pg)), bound.name)

    def run(self, query: Query, values: Any) -> int:
        """As ``ask``, returning the number of affected rows: the fast path of sends, with the least overhead."""
        if not self._may_block():
            return self.ask(query, values).rowcount
        given, types = self._dumped([values[name] for name in query.numbered[1]])
        name = self._names.get((query, types))
        if not name:  # not prepared, or not yet
            return self.ask(query, values).rowcount
        self._patience.what = query.numbered[0]
        result = self._pg.exec_prepared(name, given, self._values.formats)
        if result.status not in _FINE:
            return self._answer([result]).rowcount
        self._patience.asked_at = 0.0
        self._heard = time.monotonic()
        return _touched(result)

    def say(self, word: bytes) -> None:
        """Execute a lone begin, commit or rollback: nothing to plan, and no values. Raises psycopg.Error."""
        self._patience.what = word
        if self._may_block():
            self._answer([self._pg.exec_(word)])
        else:
            self._pg.send_query(word)
            self._answer(self._raw.wait(execute(self._pg)))

    def begin_with(self, query: Query, values: Params) -> Answer:
        """A transaction's begin and its first statement, in one round trip. Raises psycopg.Error."""
        bound = self._bound(query, values)
        if self._is_called_by_name and (call := bound.call) and self._may_block():
            return self._answer([self._pg.exec_(self._begin_word + b"; " + call)], bound.name)
        return self._piped([self._bound(self._begin, None), bound])[1]

    def commit_and_begin_with(self, release: bytes, query: Query, values: Params) -> Callable[[], Answer] | None:
        """As ``begin_with``, in one round trip with the commit before it; None, with nothing done, if impossible.
        Raises psycopg.Error if the commit fails; an error of the later statements is raised by the returned function.

        ``release``: releases a savepoint that must exist for the commit, or is empty.
        """
        bound = self._bound(query, values)
        if not (self._is_called_by_name and bound.call and self._may_block()):
            return None
        result = self._pg.exec_(release + b"commit; " + self._begin_word + b"; " + bound.call)
        is_begun = self._pg.transaction_status in _BEGUN
        try:
            answer = self._answer([result], bound.name)
        except psycopg.Error as error:
            if not is_begun or error.sqlstate == _NO_SAVEPOINT:
                raise
            return partial(_refused, error)
        return lambda: answer

    def ask_all(self, asked: Sequence[tuple[Query, Params]]) -> list[Answer]:
        """Execute all in one round trip, and in one transaction if none is open. Raises the first error."""
        return self._piped([self._bound(query, values) for query, values in asked])

    def look(self, asked: Sequence[tuple[Query, Params]], limit: int | None) -> list[Answer]:
        """As ``ask_all``, in an explicit read-only transaction, whatever the session's settings are.

        ``limit``: statement timeout in milliseconds, if any.
        """
        begun: list[tuple[Query, Params]] = [(LOOK, None)] if limit is None else [(LOOK, None), (LIMIT, {"ms": limit})]
        return self.ask_all([*begun, *asked, (COMMIT, None)])[len(begun) : -1]

    def limit(self, milliseconds: int) -> None:
        """Set statement_timeout for the rest of the transaction."""
        self.ask(LIMIT, {"ms": milliseconds})

    def copy_in(self, query: Query, chunks: Iterable[bytes]) -> None:
        """Load chunks; the server loads each while the next is made. An error in making one aborts.

        Raises psycopg.Error.
        """
        self._patience.what = query.numbered[0]
        loading = CopyIn(self._raw, query.numbered[0])
        try:
            for chunk in chunks:
                loading.put(chunk)
        except BaseException:
            loading.give_up()
            raise
        loading.end()

    def _piped(self, bounds: Sequence["BoundQuery"]) -> list[Answer]:
        count = 0
        try:
            self._pg.enter_pipeline_mode()
            for each in bounds:
                each.send(self._pg)
                count += 1
            self._pg.pipeline_sync()
            answers = self._raw.wait(_answers(self._pg, count + 1))
            if self._pg.status == ConnStatus.OK:
                self._pg.exit_pipeline_mode()
        except BaseException:  # the next result could be another statement's: the session is unusable
            self._pg.finish()
            raise
        return [self._answer(results) for results in answers[:count]]

    def _bound(self, query: Query, values: Any) -> "BoundQuery":
        """Bind values. From its second use on, a statement is prepared, unless there are too many."""
        text, names = query.numbered
        self._patience.what = text
        asked = list(map(values.__getitem__, names)) if names else []
        given, types = self._dumped(asked)
        name = self._names.get((query, types)) or self._name(query, text, types)
        return BoundQuery(name, text, asked, given, types, self._values.formats)

    def _dumped(self, asked: list[Any]) -> tuple[Sequence[Any], Sequence[int]]:
        """The values in libpq's form, and their types."""
        transformer = self._values
        given = transformer.dump_sequence(asked, _formats(asked))
        return given, transformer.types or ()

    def _may_block(self) -> bool:
        """Whether to wait inside libpq, at a third of the cost of waiting here. Not in the main thread: it is not
        interruptible.

        Nor after a pause inside a transaction: libpq loses the reason if the server ended the session meanwhile.
        """
        if threading.get_ident() == _main:
            return False
        now = time.monotonic()
        if self._pg.transaction_status != TransactionStatus.IDLE and now >= self._heard + _RECENTLY:
            return False
        self._patience.asked_at = now
        return True

    def _name(self, query: Query, text: bytes, types: Sequence[int]) -> bytes:
        name = self._names.get((query, types))
        if name is None and len(self._names) < (self._raw.prepared_max or 0):
            self._names[query, types] = b""
        elif name == b"" and self._pg.pipeline_status == PipelineStatus.OFF:
            self._prepared += 1
            name = b"pgqueue_%d" % self._prepared
            self._pg.send_prepare(name, text, types)
            self._answer(self._raw.wait(execute(self._pg)))
            self._names[query, types] = name
        return name or b""

    def _answer(self, results: list[PGresult], name: bytes = b"") -> Answer:
        result = results[0]
        self._patience.asked_at = 0.0
        if result.status in _FINE:
            self._heard = time.monotonic()
            return Answer(result, self._values, self._makers, name)
        if self._pg.status != ConnStatus.OK and not result.error_field(DiagnosticField.SQLSTATE):
            raise self._patience.error or psycopg.OperationalError(self._pg.get_error_message())
        error = error_from_result(result, encoding="utf-8")
        if error.sqlstate in _STALE:
            self._names.clear()
            self._makers.clear()
            self._is_called_by_name &= error.sqlstate != _UNKNOWN  # poolers track names in the protocol, not in SQL
        raise error


class BoundQuery(NamedTuple):
    """A statement with its values in libpq's form."""

    name: bytes  # of the prepared statement, or empty
    text: bytes
    asked: list[Any]
    given: Sequence[Any]
    types: Sequence[int]
    formats: Sequence[Any] | None

    def send(self, pg: PGconn) -> None:
        if self.name:
            pg.send_query_prepared(self.name, self.given, self.formats)
        else:
            pg.send_query_params(self.text, self.given, self.types, self.formats)

    def run(self, pg: PGconn) -> PGresult:
        if self.name:
            return pg.exec_prepared(self.name, self.given, self.formats)
        return pg.exec_params(self.text, self.given, self.types, self.formats)

    @property
    def call(self) -> bytes:
        """The call as SQL, if prepared and with only numbers as values; else empty."""
        if not self.name or not _NUMBERS.issuperset(map(type, self.asked)):
            return b""
        return b"execute %b(%b)" % (self.name, b",".join([b"%d" % each for each in self.asked]))


def _formats(asked: list[Any]) -> list[PyFormat]:
    """Lists in binary: as text, an array of a hundred headers takes milliseconds to quote, and again to parse."""
    if list in map(type, asked):
        return [BINARY if type(each) is list else AUTO for each in asked]
    return [AUTO] * len(asked)


def _answers(pg: PGconn, count: int) -> PQGen[list[list[PGresult]]]:
    """Read ``count`` answers; fewer if the session ends: then the last one has the reason."""
    answers: list[list[PGresult]] = []
    try:
        yield from send(pg)
        while len(answers) < count:
            answers.append((yield from fetch_many(pg)))
    except psycopg.OperationalError:
        farewell = pg.get_result()
        if farewell is None or farewell.status != ExecStatus.FATAL_ERROR:
            raise
        answers.append([farewell])
    return answers


def _touched(result: PGresult) -> int:
    """Number of affected rows; -1, as of a cursor, if the statement has none."""
    touched = result.command_tuples
    return -1 if touched is None else touched


def _refused(error: psycopg.Error) -> Answer:
    raise error


def _columns(result: PGresult) -> tuple[bytes, ...]:
    return tuple(result.fname(number) or b"" for number in range(result.nfields))


@lru_cache(maxsize=4096)
def _maker(columns: tuple[bytes, ...]) -> Maker:
    made: Any = namedtuple("Row", [name.decode() for name in columns], rename=True)  # type: ignore[misc]
    return partial(tuple.__new__, made)
