"""Our statements over libpq itself, prepared, and several in one round trip: a third of what cursors cost.

Waiting (with Ctrl-C in it), and how values become parameters and columns values, is psycopg's own.
"""

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import psycopg
from psycopg.abc import PQGen
from psycopg.abc import Transformer as Values
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from pgqueue_admin.dialects.connection import Params, Row
from pgqueue_admin.dialects.postgresql.filled import Filled

_FINE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
_STALE = ("26000", "0A000")  # somebody deallocated it; its table is another one now


class Answer(NamedTuple):
    """What a statement left, with the face of a cursor."""

    result: PGresult
    values: Values

    @property
    def rowcount(self) -> int:
        touched = self.result.command_tuples
        return -1 if touched is None else touched

    def fetchall(self) -> list[Row]:
        if not self.result.ntuples:
            return []
        self.values.set_pgresult(self.result)
        return self.values.load_rows(0, self.result.ntuples, _maker(_columns(self.result)))

    def fetchone(self) -> Row | None:
        rows = self.fetchall()
        return rows[0] if rows else None


class Libpq:
    """The statements of one session. psycopg prepares none in it: it would deallocate ours with its own."""

    def __init__(self, raw: psycopg.Connection[Any]):
        raw.prepare_threshold = None
        self._raw = raw
        self._pg = raw.pgconn
        self._values: Values = Transformer(raw)
        self._names: dict[tuple[Filled, Sequence[int]], bytes] = {}
        self._prepared = 0

    def ask(self, query: Filled, values: Params) -> Answer:
        """Raises psycopg.Error."""
        self._bound(query, values)()
        return self._answer(self._raw.wait(execute(self._pg)))

    def ask_all(self, asked: Sequence[tuple[Filled, Params]]) -> list[Answer]:
        """In one round trip; outside of a transaction in one of their own. Raises the first error."""
        sends = [self._bound(query, values) for query, values in asked]
        try:
            self._pg.enter_pipeline_mode()
            for each in sends:
                each()
            self._pg.pipeline_sync()
            answers = self._raw.wait(_answers(self._pg, len(sends) + 1))
            if self._pg.status == ConnStatus.OK:
                self._pg.exit_pipeline_mode()
        except BaseException:  # the next answer could be anybody's
            self._raw.close()
            raise
        return [self._answer(results) for results in answers[: len(sends)]]

    def _bound(self, query: Filled, values: Any) -> Callable[[], None]:
        """What sends it, prepared from the second time on, unless there are too many."""
        text, names = query.numbered
        asked = [values[name] for name in names]
        given = self._values.dump_sequence(asked, [_format(each) for each in asked])
        types, formats = self._values.types or (), self._values.formats
        name = self._name(query, text, types)
        if name:
            return partial(self._pg.send_query_prepared, name, given, formats)
        return partial(self._pg.send_query_params, text, given, types, formats)

    def _name(self, query: Filled, text: bytes, types: Sequence[int]) -> bytes:
        name = self._names.get((query, types))
        if name is None and len(self._names) < (self._raw.prepared_max or 0):
            self._names[query, types] = b""
        elif name == b"":
            self._prepared += 1
            name = b"pgqueue_%d" % self._prepared
            self._pg.send_prepare(name, text, types)
            self._answer(self._raw.wait(execute(self._pg)))
            self._names[query, types] = name
        return name or b""

    def _answer(self, results: list[PGresult]) -> Answer:
        result = results[0]
        if result.status in _FINE:
            return Answer(result, self._values)
        error = error_from_result(result, encoding="utf-8")
        if error.sqlstate in _STALE:
            self._names.clear()
        raise error


def _format(value: Any) -> PyFormat:
    """Lists binary: as text, an array of a hundred headers takes milliseconds to quote, and the server to read."""
    return PyFormat.BINARY if type(value) is list else PyFormat.AUTO


def _answers(pg: PGconn, count: int) -> PQGen[list[list[PGresult]]]:
    """Fewer where the session ends meanwhile: the last of them says why."""
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


def _columns(result: PGresult) -> tuple[bytes, ...]:
    return tuple(result.fname(number) or b"" for number in range(result.nfields))


@lru_cache(maxsize=4096)
def _maker(columns: tuple[bytes, ...]) -> Callable[[Sequence[Any]], Row]:
    made: Any = namedtuple("Row", [name.decode() for name in columns], rename=True)  # type: ignore[misc]
    return made._make
