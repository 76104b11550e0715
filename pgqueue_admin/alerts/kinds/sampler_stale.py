"""No new sample: figures on every page, and warnings based on them, are frozen.

A running sampler reports why it reads nothing: then the warning is ``blind``.

First step: See on Workers whether supervisor and sampler run, and whether the database answers.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models import staleness


def find(look: AlertSnapshot) -> Iterator[Finding]:
    if look.misses_samples and not (look.sight.is_blind and look.hears_of_sampler):
        newest = look.newest_sample
        age = staleness.age(newest, look.now) if newest else None
        yield Finding("sampler_stale", "sampler", warnings.sampler_stale(age, staleness.limit()), CRITICAL)
    for alias, since in look.silent_samplers():
        said = warnings.sampler_stale(staleness.age(since, look.now), staleness.limit())
        yield Finding("sampler_stale", f"sampler of {alias}", said, CRITICAL)


KIND = AlertKind("sampler_stale", "no new sample", find)
