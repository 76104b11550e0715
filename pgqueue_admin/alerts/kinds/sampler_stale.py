"""No new sample: figures on every page, and warnings that follow from them, stand still."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import CRITICAL, Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.records import freshness
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    if look.misses_samples:
        newest = look.newest_sample
        age = freshness.age(newest, look.now) if newest else None
        yield Found("sampler_stale", "sampler", warnings.sampler_stale(age, freshness.limit()), CRITICAL)


KIND = Kind("sampler_stale", "no new sample", find)
