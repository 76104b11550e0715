"""No new sample: figures on every page, and warnings that follow from them, stand still.

A sampler that runs says why it sees nothing: then the warning is ``blind``.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import CRITICAL, Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.records import freshness
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    if look.misses_samples and not (look.sight.is_blind and look.hears_of_sampler):
        newest = look.newest_sample
        age = freshness.age(newest, look.now) if newest else None
        yield Found("sampler_stale", "sampler", warnings.sampler_stale(age, freshness.limit()), CRITICAL)


KIND = Kind("sampler_stale", "no new sample", find)
