"""What the sampler stored."""

from collections.abc import Callable

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import LatestSample

Connect = Callable[..., Connection]


def latest(table: str = "Q") -> LatestSample:
    return LatestSample.objects.get(queue__table=table)
