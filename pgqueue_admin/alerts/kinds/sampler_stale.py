"""No new sample: figures on every page, and warnings that follow from them, stand still."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import CRITICAL, Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    if look.sample_age > look.sample_limit:
        newest = look.newest_sample
        age = (look.now - newest).total_seconds() if newest else None
        yield Found("sampler_stale", "sampler", warnings.sampler_stale(age, look.sample_limit), CRITICAL)


KIND = Kind("sampler_stale", "no new sample", find)
