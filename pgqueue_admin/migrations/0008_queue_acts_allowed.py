from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pgqueue', '0007_api_tokens'),
    ]

    operations = [
        migrations.AddField(
            model_name='queue',
            name='acts_allowed',
            field=models.BooleanField(db_default=False, default=False, help_text='Messages may be taken out, moved and sent here, though no endpoint of ours receives from it.'),
        ),
    ]
