from django.db import migrations, models

CHOICES = [
    ("default", "default"),
    ("read_committed", "Read Committed"),
    ("repeatable_read", "Repeatable Read"),
    ("serializable", "Serializable"),
    ("snapshot", "Snapshot"),
]


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0026_outbox_first_seen")]

    operations = [
        migrations.AlterField(
            "endpoint",
            "outbox_isolation",
            models.CharField(choices=CHOICES, db_default="default", default="default", max_length=16),
        ),
        # only where nobody can have meant it: an outbox that is on keeps what it runs with
        migrations.RunSQL(
            "update pgqueue_endpoint set outbox_isolation = 'default'"
            " where outbox = 'off' and outbox_isolation = 'read_committed'",
            "update pgqueue_endpoint set outbox_isolation = 'read_committed'"
            " where outbox_isolation in ('default', 'snapshot')",
        ),
    ]
