"""Which fields of bodies a person wants as columns, by message type."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import pgqueue_admin.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("pgqueue", "0019_queue_scopes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PayloadChoice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("type", models.CharField(help_text="Full name; of a lease message its kind.", max_length=500)),
                ("fields", models.JSONField(default=list)),
                ("chosen_at", pgqueue_admin.models.fields.TimestampField(auto_now=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("person", "type"), name="pgqueue_payloadchoice_type")
                ],
            },
        ),
    ]
