"""Times as pages show them, for tests that may run just after midnight or on New Year's Day."""

SHORT = r"(?:\d{4}-\d\d-\d\d|(?:\d{1,2} \w{3} )?\d\d:\d\d)"
