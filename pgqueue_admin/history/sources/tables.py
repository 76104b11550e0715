"""Tables that history is read from: the archive, if it exists, and discovered audit queues."""

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import HistorySource, database_clock
from pgqueue_admin.models.queue_database import queues_in

ARCHIVE = "messages.message_archive"
SNAPSHOTS, NUMBERS = "snapshots", "numbers"


def sources(connection: Connection) -> list[HistorySource]:
    """A ledger row for each table, created when it is first seen. Marks gone tables."""
    named = [(table, NUMBERS) for table in _audits(connection)]
    if way := _way_of_archive(connection):
        named.insert(0, (ARCHIVE, way))
    HistorySource.objects.exclude(table__in=[table for table, _ in named]).update(exists=False)
    HistorySource.objects.filter(exists=False, table__in=[table for table, _ in named]).update(exists=True)
    return [HistorySource.objects.get_or_create(table=table, defaults={"cursor_kind": way})[0] for table, way in named]


def _way_of_archive(connection: Connection) -> str | None:
    """The original's archive is read by number until adopted; one read by transaction never is again."""
    statements = postgresql().history
    if connection.value(statements.has_archive()):
        return SNAPSHOTS
    was_ours = HistorySource.objects.filter(table=ARCHIVE, cursor_kind=SNAPSHOTS).exists()
    return NUMBERS if not was_ours and connection.value(statements.has_original()) else None


def number_of(table: str) -> str:
    """The column that numbers its rows, if read by number."""
    return "id" if table == ARCHIVE else "seq"


def _audits(connection: Connection) -> list[str]:
    """Readable audit queues. One read before stays a source, and reports when it is no longer readable."""
    audits = list(queues_in("").filter(kind="audit", gone_since=None).values_list("schema", "table"))
    asked = dict(zip(("schemas", "tables"), map(list, zip(*audits, strict=True)), strict=False))
    allowed = {tuple(row) for row in connection.all(postgresql().history.readable(), asked)} if audits else set()
    known = set(HistorySource.objects.values_list("table", flat=True))
    named = [(each, postgresql().canonical(Address(*each))) for each in audits]
    return [table for each, table in named if each in allowed or table in known]


def given_out(connection: Connection) -> int:
    """Sum of the numbers that their sequences gave out: its growth is an upper bound of new rows."""
    there = list(HistorySource.objects.filter(exists=True))
    places = [postgresql().parse_address(each.table) for each in there]
    asked = {
        "schemas": [place.schema for place in places],
        "tables": [place.table for place in places],
        "numbers": ["seq" if each.cursor_kind == SNAPSHOTS else number_of(each.table) for each in there],
    }
    statements = postgresql().history
    found: int = connection.value(statements.given_out(numbered_by=statements.numbered_by), asked)
    return found


def is_held(source: HistorySource) -> bool:
    """Whether a cancel pauses it and it was not requested since."""
    return source.paused_until is not None and source.paused_until > database_clock.now()
