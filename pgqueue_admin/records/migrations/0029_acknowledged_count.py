"""Acknowledged warnings of before are known as they stand now, or each would be open again at once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0028_failed_sign_in")]

    operations = [
        migrations.AddField(
            model_name="alert",
            name="acknowledged_count",
            field=models.BigIntegerField(default=0, help_text="The count that somebody knew of."),
        ),
        migrations.RunSQL(
            "update pgqueue_alert set acknowledged_count = count where acknowledged_at is not null",
            migrations.RunSQL.noop,
        ),
    ]
