"""Masking rules, whose reveal is a right of its own; nobody has it by an upgrade, as nothing is masked before."""

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('pgqueue', '0012_saved_views'),
    ]

    operations = [
        migrations.CreateModel(
            name='MaskingReveal',
            fields=[
                ('person', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to=settings.AUTH_USER_MODEL)),
                ('began_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField()),
                ('reason', models.TextField()),
            ],
        ),
        migrations.AlterModelOptions(
            name='operation',
            options={'ordering': ['-id'], 'permissions': [('retry_message', 'Can retry dead messages'), ('discard_message', 'Can discard and restore dead messages'), ('run_endpoint', 'Can start, stop, scale and pause endpoints'), ('change_settings', 'Can change peek settings and targets'), ('change_schedule', 'Can change schedules and send their messages'), ('read_message', "Can read message bodies and headers' values"), ('reveal_masked', 'Can reveal masked parts of messages, and change what is masked')]},
        ),
        migrations.CreateModel(
            name='MaskingRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='Stands in the bar.', max_length=60)),
                ('kind', models.CharField(choices=[('header', 'Header'), ('path', 'JSON path'), ('regex', 'Regular expression')], max_length=10)),
                ('pattern', models.CharField(max_length=500)),
                ('types', models.JSONField(blank=True, default=list, help_text='Patterns of message types; none: every type.')),
                ('version', models.PositiveIntegerField(default=1)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('name'), name='pgqueue_maskingrule_name')],
            },
        ),
    ]
