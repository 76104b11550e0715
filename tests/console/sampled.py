"""Pages over sampled queues: the recorded shop, or many small queues."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connections
from django.db.models import F
from django.test import Client
from django.utils import timezone

from pgqueue_admin.demo.restore_recording import RECORDED_AT
from pgqueue_admin.models import LatestSample, Queue, queue_database
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess


def sample(times: int = 1) -> None:
    sampling = SamplerProcess()
    for _ in range(times):
        sampling.run_once()
    sampling.close()


def as_when_recorded() -> None:
    """Restore the recorded ages of oldest messages: otherwise the worst queue would depend on the date of the test."""
    since = timezone.now() - RECORDED_AT
    LatestSample.objects.exclude(oldest_at=None).update(oldest_at=F("oldest_at") + since)


def signed_in(name: str = "ivo", superuser: bool = False) -> Client:
    client = Client()
    client.force_login(User.objects.create_user(name, is_superuser=superuser))
    return client


def many_queues(count: int) -> None:
    """Insert rows of the console's tables, as if so many queues had been found and sampled."""
    now = timezone.now()
    queues = Queue.objects.bulk_create(
        Queue(schema="public", table=f"{'Very' * 8}.Long{number:03d}", kind="input", target_age_seconds=60)
        for number in range(count)
    )
    LatestSample.objects.bulk_create(
        LatestSample(
            queue=queue, at=now, changed_at=now, ready=2_147_483_647, in_flight=64, delayed=2_147_483_647,
            expired=2_147_483_647, dead=0, depth=2_147_483_647, how="counted", head_seq=1, tail_seq=2_147_483_647,
            in_per_second=24.0, out_per_second=20.0, oldest_at=now - timedelta(minutes=5),
        )
        for queue in queues
    )  # fmt: skip


@contextmanager
def elsewhere(alias: str, **changes: object) -> Iterator[None]:
    """Point Django's ``alias`` elsewhere, such as to a port where nothing answers."""
    entry = connections[alias].settings_dict
    before = dict(entry)
    connections[alias].close()
    queue_database.close()
    entry.update(changes)
    try:
        yield
    finally:
        connections[alias].close()
        queue_database.close()
        entry.clear()
        entry.update(before)


@contextmanager
def read_only(alias: str) -> Iterator[None]:
    """Make the database of ``alias`` read-only, as after a switch-over: sessions that write are ended."""
    with connections[alias].cursor() as cursor:
        cursor.execute("select current_database()")
        ((name,),) = cursor.fetchall()
        cursor.execute(f'alter database "{name}" set default_transaction_read_only = on')
        _end_others(cursor)
    connections[alias].close()
    try:
        yield
    finally:
        with connections[alias].cursor() as cursor:
            cursor.execute("set default_transaction_read_only = off")
            cursor.execute(f'alter database "{name}" reset default_transaction_read_only')
            _end_others(cursor)
        connections[alias].close()


def _end_others(cursor: Any) -> None:
    cursor.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )
