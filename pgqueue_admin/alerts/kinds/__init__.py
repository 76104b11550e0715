"""The warning kinds, a file each. docs/warnings.md documents every one of this list, or a test fails."""

from pgqueue_admin.alerts.kinds import (
    archive_unreadable,
    breaker_open,
    dead_count,
    dead_message,
    fatal_message,
    history_stalled,
    mail_failing,
    nobody_receives,
    peek_range,
    queue_age,
    queue_depth,
    sampler_stale,
    sequence_near_end,
    smtp_missing,
    ttbr_conflict,
    unnamed_environment,
    unusual,
    worker_crashing,
)

KINDS = [
    dead_message.KIND,
    queue_age.KIND,
    queue_depth.KIND,
    dead_count.KIND,
    nobody_receives.KIND,
    peek_range.KIND,
    ttbr_conflict.KIND,
    worker_crashing.KIND,
    fatal_message.KIND,
    breaker_open.KIND,
    sampler_stale.KIND,
    archive_unreadable.KIND,
    history_stalled.KIND,
    unusual.KIND,
    sequence_near_end.KIND,
    smtp_missing.KIND,
    mail_failing.KIND,
    unnamed_environment.KIND,
]
BY_NAME = {kind.name: kind for kind in KINDS}
