"""Failures and retried messages are counted by the hour and day, too: steps that were counted without them count anew."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0031_last_expired")]

    operations = [
        migrations.RunSQL("delete from pgqueue_countedstep", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="countedstep",
            name="retried",
            field=models.BigIntegerField(default=0, help_text="Messages that succeeded in it after they had failed."),
            preserve_default=False,
        ),
        migrations.CreateModel(
            name="FailureStep",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False, auto_created=True, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("fingerprint", models.CharField(max_length=16)),
                ("queue", models.TextField()),
                ("endpoint", models.TextField()),
                ("type", models.TextField()),
                ("exception", models.TextField()),
                ("message", models.TextField(help_text="Without ids, texts and numbers.")),
                ("messages", models.BigIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("grain", models.CharField(max_length=6)),
            ],
            options={"indexes": [models.Index(fields=["grain", "at"], name="pgqueue_fai_grain_a7db9a_idx")]},
        ),
    ]
