"""Columns get the names that their figures have elsewhere. Rows stay; indexes that name a column are made anew."""

from django.db import migrations, models

RENAMED = {
    "alert": {"told_count": "notified_count", "seen_at": "last_seen_at"},
    "alertmail": {"taken": "accepted_recipients"},
    "anomaly": {"seen": "observed"},
    "historybatch": {
        "summed_at": "aggregated_at",
        "table_files": "relfilenodes",
        "tokens": "attempt_tokens",
    },
    "historysource": {
        "way": "cursor_kind",
        "ahead": "snapshot_target",
        "head": "candidate_max_seq",
        "head_at": "candidate_at",
        "writers": "open_transactions",
        "line_began": "timeline_start_lsn",
        "log_written": "wal_flush_lsn",
        "log_at": "wal_flush_at",
        "wanted_at": "requested_at",
        "note": "blocked_reason",
        "held_until": "paused_until",
    },
    "inflightatcrash": {"held_since": "received_at", "beside": "others_in_flight", "settled_at": "resolved_at"},
    "latestsample": {"left_at": "last_departure_at", "lowest_at": "low_water_checked_at"},
    "minimumttbr": {"seen_at": "last_seen_at", "delivery": "delivery_buckets", "delivery_n": "delivery_counts"},
    "recomputerequest": {"summed_at": "aggregated_at"},
    "rollup": {
        "critical": "critical_buckets",
        "critical_n": "critical_counts",
        "processing": "processing_buckets",
        "processing_n": "processing_counts",
        "delivery": "delivery_buckets",
        "delivery_n": "delivery_counts",
    },
    "trialitem": {"place": "position"},
    # of the engine: nothing is done to its table, which engine_schema renames
    "archivedmessage": {
        "found_in": "ingested_from",
        "no_retry": "retry_blocked_reason",
        "became_by": "resolved_by",
        "became_at": "resolved_at",
    },
}


class Migration(migrations.Migration):
    # the last of all that are there: others add columns under the names of before
    dependencies = [("pgqueue", "0024_foreign_outbox_upkeep")]

    operations = [
        migrations.RemoveIndex("historybatch", "batches_to_sum"),
        migrations.RemoveIndex("inflightatcrash", "held_not_settled"),
        migrations.RemoveConstraint("trialitem", "pgqueue_trialitem_place"),
        *[
            migrations.RenameField(model, before, now)
            for model, columns in RENAMED.items()
            for before, now in columns.items()
        ],
        migrations.AddIndex(
            "historybatch",
            models.Index(fields=["id"], condition=models.Q(aggregated_at=None), name="batches_to_sum"),
        ),
        migrations.AddIndex(
            "inflightatcrash",
            models.Index(fields=["endpoint"], condition=models.Q(resolved_at=None), name="held_not_settled"),
        ),
        migrations.AddConstraint(
            "trialitem",
            models.UniqueConstraint(fields=["trial", "position"], name="pgqueue_trialitem_place"),
        ),
        migrations.AlterModelOptions("trialitem", {"ordering": ["position"]}),
        migrations.AlterField(
            "historysource",
            "candidate_at",
            models.DateTimeField(help_text="When that, or the snapshot's target, was looked up.", null=True),
        ),
        migrations.AlterField(
            "retryplan",
            "judged_from",
            models.PositiveIntegerField(default=0, help_text="Deaths up to this position stop it no more."),
        ),
    ]
