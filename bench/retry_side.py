"""A process that retries all dead messages, as housekeeping does: prints its seconds and its peak memory in MB.

python -m bench.retry_side "at once"|"in stages"
"""

import re
import sys
import time
from pathlib import Path


def main(way: str) -> None:
    import django

    django.setup()
    from django.contrib.auth import get_user_model

    from pgqueue_admin.archive.messages import ArchiveFilter
    from pgqueue_admin.models import Operation
    from pgqueue_admin.services.operations import lifecycle, runner, selection, staged_retry
    from pgqueue_admin.services.operations.plans import FASTEST, Planned

    person = get_user_model().objects.get(username="bench")
    frozen = selection.freeze("retry", ArchiveFilter(state="dead"), person, "command")
    fast = Planned(try_first=0, then_some=0, rest_rate=FASTEST, stop_dead=0, waits=False)
    began = time.monotonic()
    lifecycle.start(frozen.pk, person, planned=fast if way == "in stages" else None)
    if way == "at once":
        runner.run(frozen.pk)
    while way == "in stages" and Operation.objects.get(pk=frozen.pk).state != Operation.State.FOLLOWING:
        time.sleep(staged_retry.step(frozen.pk))
    seconds = time.monotonic() - began
    most = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())  # getrusage includes the parent's
    assert most
    print(seconds, int(most[1]) / 1000)


if __name__ == "__main__":
    main(sys.argv[1])
