"""What `make run` does before the console starts, and that being killed there loses nothing."""

from io import StringIO
from typing import NoReturn

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.management.commands.prepare import Command


class Gone(StringIO):
    """A terminal that is no longer there."""

    def write(self, text: str, /) -> NoReturn:
        raise BrokenPipeError


def test_a_login_that_could_not_be_told_is_not_kept(console_database: str) -> None:
    with pytest.raises(BrokenPipeError):
        Command(stdout=Gone())._tell_login()
    assert not User.objects.exists()
