"""SQL scripts that a DBA runs for an outbox: create the table, migrate an original's table, schedule clean-up, and
create the decision table of two-phase commit.

Needs no driver and no Django. The texts are ``dialects/*/outbox_script.sql``; their places are filled here.
"""

import re
from collections.abc import Callable
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args

import pgqueue_admin.dialects
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.identifier_rules import IdentifierRules
from pgqueue_admin.dialects.statements import StatementFolder

ScriptDialect = Literal["postgresql", "mysql", "sqlserver", "oracle"]
What = Literal["create", "migrate", "cleanup", "decisions"]
DIALECTS, WHATS = get_args(ScriptDialect), get_args(What)
KEEP_DAYS, MOST_DAYS = 7, 3650  # days that the job keeps dispatched records, and their maximum

_PLACE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_CURRENT_SCHEMA = {"mysql": "database()", "oracle": "sys_context('userenv', 'current_schema')"}


class NoSuchScript(ValueError):
    """This dialect has no such script, or records cannot be kept so long."""


class OutboxScript:
    """Scripts for one endpoint's table in one dialect. ``keep_days``: how long the clean-up job keeps dispatched
    records.

    Raises AddressUnreadable for an invalid table name, NoSuchScript for invalid ``keep_days``.
    """

    def __init__(
        self,
        dialect: ScriptDialect,
        endpoint: str,
        schema: str = "",
        prefix: str | None = None,
        keep_days: int = KEEP_DAYS,
    ):
        if not 1 <= keep_days <= MOST_DAYS:
            raise NoSuchScript(f"records are kept for 1 to {MOST_DAYS:,} days, not for {keep_days}")
        self._rules: IdentifierRules = import_module(f"pgqueue_admin.dialects.{dialect}.identifiers").IDENTIFIERS
        self._sql = StatementFolder(dialect, Path(pgqueue_admin.dialects.__path__[0], dialect), lambda text, _: text)
        table = self._rules.outbox_table(endpoint, prefix)
        self._address = Address(schema or self._rules.default_schema, table)
        self._table = self._rules.table(self._address)
        self._schema = self._rules.text(self._address.schema) if self._address.schema else _CURRENT_SCHEMA[dialect]
        self._places: dict[str, Callable[[str], str]] = {
            "table": lambda _: self._table,
            "table_text": lambda _: self._rules.text(self._table),
            "schema_text": lambda _: self._schema,
            "name_text": lambda _: self._rules.text(table),
            "job_text": lambda _: self._rules.text(self._job()),
            "keep_days": lambda _: str(keep_days),
            "name": lambda suffix: self._rules.quote(table + suffix),
            "qualified": self._qualified,
            "key": lambda _: self._rules.quote(f"{table}_PK"),
            "index": lambda _: self._qualified("_IX"),
            "part": self.statement,
            "outbox": lambda name: self._filled(getattr(self._sql.outbox, name)),
            "decision": lambda name: getattr(self._sql.decision, name).text.replace(
                "{table}", self._qualified("_Decision")
            ),
            "statement_text": lambda name: self._rules.text(self.statement(name)),
            "block": lambda name: _dollar_quoted(self.statement(name)),
        }

    def text(self, what: What) -> str:
        """One script, headed by its reason. Raises NoSuchScript."""
        if what not in self.statements:
            raise NoSuchScript(f"the outbox there takes part in no two-phase commit, so it has no {what}")
        statement = getattr(self._sql.outbox_script, what)
        return f"-- {statement.why}\n{self._filled(statement)}\n"

    def statement(self, name: str) -> str:
        return self._filled(getattr(self._sql.outbox_script, name))

    @property
    def statements(self) -> list[str]:
        return [each.name for each in self._sql.outbox_script]

    def _filled(self, statement: Any) -> str:
        return _PLACE.sub(self._placed, statement.text)

    def _placed(self, place: re.Match[str]) -> str:
        """Indent following lines as the line that the text is put into."""
        line = place.string[: place.start()].rpartition("\n")[2]
        margin = " " * (len(line) - len(line.lstrip()))
        return self._places[place[1]](place[2] or "").replace("\n", f"\n{margin}")

    def _job(self) -> str:
        """Oracle jobs belong to a schema and are named like tables; elsewhere the name contains the full table name."""
        if self._sql.name == "oracle":
            return self._qualified("_CJ")
        name = f"{self._table} clean-up"
        self._rules.quote(name)  # raises if it is too long
        return name

    def _qualified(self, suffix: str) -> str:
        return self._rules.table(Address(self._address.schema, self._address.table + suffix))


def _dollar_quoted(body: str) -> str:
    """With a tag that does not occur in the body."""
    tags = ("$outbox$" if number == 0 else f"$outbox{number}$" for number in count())
    tag = next(tag for tag in tags if tag not in body)
    return f"{tag}\n{body}\n{tag}"
