from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0031_lease_rule_in_admin")]

    operations = [
        migrations.AddField(
            "endpoint", "purge_expired_at_start", models.BooleanField(db_default=False, default=False)
        )
    ]
