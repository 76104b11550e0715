"""The response time of Trends: pages over ninety and seven days, of one queue among many, and of all."""

import http.client
from urllib.parse import quote

from bench.console import get, p95, process, wait_until
from bench.history_archive import ENDPOINTS, TYPES
from bench.table import Row, row
from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded import ports

# The data of Trends: a quarter of continuous running and the weeks before it.
DAYS = 90
HOURS, COMPARED = 63, 160  # days of hourly and of daily data: longer than a week and a quarter, to compare with
_GRAINS = f"('hour', interval '1 hour', {HOURS}), ('day', interval '1 day', {COMPARED})"
_FIGURES = """
insert into pgqueue_console.pgqueue_rollup
  (batch_id, grain, at, queue, endpoint, type, result, exception, messages, skewed, critical_buckets,
  critical_counts, processing_buckets, processing_counts, delivery_buckets, delivery_counts)
select %(batch)s, grain, at, '"public"."Endpoint' || mod(kind, %(endpoints)s::int) || '"',
  'Endpoint' || mod(kind, %(endpoints)s::int),
  'Shop.Message' || kind / %(endpoints)s::int, case when failed then 'failed' else 'success' end,
  case when failed then 'Shop.CardRefused' else '' end, 4000, 0, b, c, b, c, b, c
from (values {grains}) as grains (grain, step, days),
  generate_series(0, %(endpoints)s::int * %(types)s::int - 1) kind, (values (true), (false)) as results (failed),
  generate_series(date_trunc('day', now()) - days * interval '1 day', now(), step) at,
  (select array_agg(n) as b, array_agg(20 + mod(n, 7)) as c from generate_series(200, 379) n) histogram
"""

# one in 25 s, of 40 kinds; a third succeeded when retried
_FAILED = """
with failed as (
  select n, now() - n * interval '25 seconds' as at, '"public"."Endpoint' || mod(n, %(endpoints)s::int) || '"' as queue,
    'Endpoint' || mod(n, %(endpoints)s::int) as endpoint, 'Shop.Message' || mod(n / 7, %(types)s::int) as type
  from generate_series(1, %(days)s::int * 86400 / 25) n
), failures as (
  insert into pgqueue_console.pgqueue_failurerollup
    (batch_id, at, fingerprint, queue, endpoint, type, exception, message, messages,
    first_at, last_at)
  select %(batch)s, date_trunc('minute', at), lpad(to_hex(mod(n, 40)), 16, '0'), queue, endpoint, type,
    'Shop.CardRefused', 'Card <n> was refused', 1, at, at
  from failed
)
insert into pgqueue_console.pgqueue_retryoutcome
  (batch_id, message_id, queue, endpoint, type, exception, failed, succeeded, first_at,
  last_failed_at, last_succeeded_at)
select %(batch)s, md5('failed ' || n)::uuid::text, queue, endpoint, type, 'Shop.CardRefused', 1, (mod(n, 3) = 0)::int,
  at, at, case when mod(n, 3) = 0 then at + interval '1 minute' end
from failed
"""

# each input queue and all of them together, from samples
_DEPTHS = """
with queues as (
  insert into pgqueue_console.pgqueue_queue
    (schema, "table", kind, reason, first_seen_at, target_age_seconds, ingest, endpoint)
  select 'public', 'Endpoint' || n, 'input', '', now(), 60, false, 'Endpoint' || n
  from generate_series(0, %(endpoints)s::int - 1) n
  returning id
)
insert into pgqueue_console.pgqueue_depthbucket
  (grain, at, queue, low, median, high, in_per_second, out_per_second, rated_minutes,
  oldest_seconds, oldest_at_least, unread, how)
select grain, at, id, 10, 200, 3000, 50, 50, extract(epoch from step) / 60, 4, false, 0, 'counted'
from (select id from queues union all select 0) each,
  (values {grains}) as grains (grain, step, days),
  generate_series(date_trunc('day', now()) - days * interval '1 day', now(), step) at
"""


def lay_out(connection: Connection) -> None:
    """Fill in counts and times, 180 buckets each, for varied timings; 311,040 failures in DAYS; depths.

    They are counted, cut and compared as beat does.
    """
    from pgqueue_admin.history import ledger
    from pgqueue_admin.history.anomalies import hourly_totals
    from pgqueue_admin.history.rollups import closed_periods
    from pgqueue_admin.models import database_clock

    batch = connection.value("select min(id) from pgqueue_console.pgqueue_historybatch")
    known = {"batch": batch, "endpoints": ENDPOINTS, "types": TYPES, "days": DAYS}
    for made in (_FIGURES, _FAILED, _DEPTHS):
        connection.run(made.replace("{grains}", _GRAINS), known)
    connection.run("update pgqueue_console.pgqueue_historybatch set aggregated_at = null")
    connection.run(
        "vacuum analyze pgqueue_console.pgqueue_rollup, pgqueue_console.pgqueue_failurerollup,"
        " pgqueue_console.pgqueue_retryoutcome, pgqueue_console.pgqueue_depthbucket"
    )
    while closed_periods.finalize(ledger.watermark()):
        pass
    hourly_totals.see(database_clock.now())
    connection.run(
        "vacuum analyze pgqueue_console.pgqueue_countbucket, pgqueue_console.pgqueue_latencybucket,"
        " pgqueue_console.pgqueue_failurebucket, pgqueue_console.pgqueue_baselinebucket"
    )


def trends(connection: Connection, cookie: str) -> list[Row]:
    lay_out(connection)
    port = ports.free()
    web = ("-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--port", str(port), "--no-access-log")
    environment = {"PORT": str(port), "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.web_settings"}
    queue = quote('"public"."Endpoint3"')
    chosen = {"one queue": f"&queue={queue}", "one endpoint": "&endpoint=Endpoint3", "all queues": ""}
    pages = {
        f"{days} days of {whose}{of_types}": f"/trends/{types}?w={days}d{names}"
        for days in (DAYS, 7)
        for whose, names in chosen.items()
        for types, of_types in (("", ""), ("types/", ": types"))
    }
    taken: dict[str, list[float]] = {path: [] for path in (*pages.values(), "/healthz")}
    with process(*web, **environment):
        wait_until(lambda: ports.answers(port, "127.0.0.1"), what="the console answers")
        client = http.client.HTTPConnection("127.0.0.1", port)
        for number in range(65):
            for path, found in taken.items():
                spent = get(client, path, cookie)
                if number >= 5:
                    found.append(spent)
    floor = p95(taken["/healthz"])
    return [row(f"Trends, {name}, p95", p95(taken[path]), "ms", floor=floor, target=50) for name, path in pages.items()]
