import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0028_audit_intent")]

    operations = [
        migrations.CreateModel(
            "TeamFailure",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("owner", models.CharField(blank=True, max_length=150)),
                ("ticket", models.CharField(blank=True, help_text="A number or an address.", max_length=200)),
                ("note", models.TextField(blank=True, max_length=2000)),
                ("noted_by", models.CharField(blank=True, max_length=150)),
                ("noted_at", models.DateTimeField(null=True)),
                ("acknowledged_by", models.CharField(blank=True, max_length=150)),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("acknowledged_until", models.DateTimeField(help_text="Open again then.", null=True)),
                ("acknowledged_to", models.BigIntegerField(help_text="Open again when so many lie dead.", null=True)),
                (
                    "acknowledged_dead",
                    models.BigIntegerField(default=0, help_text="How many lay dead: open again at twice as many."),
                ),
                ("acknowledged_reason", models.CharField(blank=True, max_length=200)),
                ("fingerprint", models.CharField(max_length=16)),
                ("team", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
            ],
            options={
                "ordering": ["fingerprint", "team"],
                "constraints": [
                    models.UniqueConstraint(fields=["fingerprint", "team"], name="one_word_of_a_team"),
                ],
            },
        ),
    ]
