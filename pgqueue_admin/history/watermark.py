"""How far history has read the archive, for those who may take away only what is behind that."""

from datetime import datetime
from typing import NamedTuple

from django.db.models import Q

from pgqueue_admin.history.ledger import BEFORE_ALL
from pgqueue_admin.history.sources.tables import ARCHIVE
from pgqueue_admin.models import HistorySource


class Watermark(NamedTuple):
    """Every row that is visible in ``snapshot`` (empty: none) is in history; events that are visible in ``events``, and
    from before ``events_before``, are in files."""

    snapshot: str = ""
    events: str = BEFORE_ALL
    events_before: datetime | None = None


def of_archive(cluster: str, oid: int | None) -> Watermark:
    """Of this very table in this cluster; of another one nothing. A driver of the version before noted no oid."""
    known = HistorySource.objects.filter(Q(oid=oid) | Q(oid=None), table=ARCHIVE, cluster=cluster).first()
    return Watermark(known.snapshot, known.events_snapshot or BEFORE_ALL, known.events_before) if known else Watermark()
