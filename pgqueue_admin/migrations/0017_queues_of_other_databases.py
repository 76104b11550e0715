"""A schema of a database that is looked at beside the first stands with its alias; SQL Server's names are longer."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0016_foreign_outbox")]

    operations = [
        migrations.AlterField("queue", "schema", models.CharField(max_length=300)),
        migrations.AlterField("queue", "table", models.CharField(max_length=128)),
    ]
