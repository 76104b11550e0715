from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0025_plain_column_names")]

    operations = [
        migrations.CreateModel(
            "OutboxFirstSeen",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("database", models.CharField(max_length=100)),
                ("schema", models.CharField(max_length=63)),
                ("table", models.CharField(max_length=63)),
                ("record", models.CharField(max_length=200)),
                ("first_seen_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["database", "schema", "table", "record"], name="outbox_record_seen_once"
                    )
                ]
            },
        ),
        migrations.RemoveField("foreignoutbox", "waiting_since"),
    ]
