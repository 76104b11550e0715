"""Migration 0011: a user who could read messages before the upgrade still can."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command

READ = "pgqueue.read_message"


@pytest.mark.usefixtures("console_database")
def test_an_upgrade_takes_reading_from_nobody_and_new_people_are_given_it() -> None:
    call_command("migrate", "pgqueue", "0010", verbosity=0)
    Permission.objects.filter(codename="read_message").delete()
    viewer, gone = User.objects.create_user("viewer"), User.objects.create_user("gone", is_active=False)
    night = Group.objects.create(name="night shift")
    call_command("migrate", verbosity=0)
    newcomer, member = User.objects.create_user("newcomer"), User.objects.create_user("member")
    member.groups.add(night)
    assert Permission.objects.filter(codename="read_message").count() == 1
    may = [each.username for each in (viewer, gone, newcomer, member) if User.objects.get(pk=each.pk).has_perm(READ)]
    assert may == ["viewer", "member"]
    assert not gone.user_permissions.exists()
