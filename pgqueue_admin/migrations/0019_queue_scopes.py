"""Queues that the people of a group may see; nobody has a scope by an upgrade, so everybody sees all as before."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("pgqueue", "0018_purge_bounds"),
    ]

    operations = [
        migrations.CreateModel(
            name="QueueScope",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("pattern", models.CharField(help_text="schema.queue, with * for any text.", max_length=300)),
                (
                    "may_act",
                    models.BooleanField(
                        default=False, help_text="Also acts, as far as the person has the right to them."
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="queue_scopes", to="auth.group"
                    ),
                ),
            ],
            options={
                "ordering": ["group__name", "pattern"],
                "constraints": [models.UniqueConstraint(fields=("group", "pattern"), name="pgqueue_queuescope_pattern")],
            },
        ),
    ]
