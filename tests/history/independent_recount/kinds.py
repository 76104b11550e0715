"""The queues, endpoints and types that finished most."""

from typing import Any

from pgqueue_admin.history.rollups import queries
from tests.history.independent_recount.windows import Window, halves

Key = tuple[str, Window]


def plain(database: Any, window: Window) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    for part in (window, *halves(window)):
        kinds: dict[str, list[Any]] = {}
        for row in database.all(_KINDS, {"since": part[0], "until": part[1]}):
            kinds.setdefault(row.what, []).append((row.name, row.messages))
        found |= {(grain, part): kinds for grain in ("minute", "hour", "day")}
    return found


def told(window: Window, keys: list[Key]) -> dict[Key, Any]:
    return {(grain, part): queries.kinds(queries.TrendQuery(*part, grain)) for grain, part in keys}


_KINDS = """
select what, name, count(*) as messages
from recounted, lateral (values ('queue', queue), ('endpoint', endpoint), ('type', type)) as named (what, name)
where name <> '' and ended_at >= %(since)s and ended_at < %(until)s
group by 1, 2 order by what, messages desc, name
"""
