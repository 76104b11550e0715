"""Every dialect there is, for tests that all of them pass."""

import pytest

from pgqueue_admin.dialects import Dialect
from pgqueue_admin.dialects.postgresql import postgresql


@pytest.fixture(params=[postgresql], ids=lambda make: make.__name__)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return request.param()
