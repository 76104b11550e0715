"""Which table an endpoint's logical address means, and whether its name is short enough (wire sheet 1.4)."""

from pgqueue_admin.dialects import Address, Dialect

DELAYED_SUFFIX = "Delayed"


def table_name(base: str, qualifier: str = "", discriminator: str = "") -> str:
    """``Sales``, ``Sales.Delayed``, ``Sales.instance-1``: empty parts are dropped."""
    return ".".join(part for part in (base, qualifier, discriminator) if part)


def name_faults(dialect: Dialect, endpoint: str) -> list[str]:
    """Why this endpoint name cannot be used: the longest table made for it, its delayed one, must fit as well."""
    if not endpoint or "\0" in endpoint:
        return ["An endpoint needs a name, and that name may not hold a NUL character."]
    longest = table_name(endpoint, DELAYED_SUFFIX)
    size, limit = len(longest.encode()), dialect.max_table_bytes
    if size <= limit:
        return []
    table = f"its table {longest!r} has {size} bytes and {limit} are allowed"
    return [f"The endpoint name {endpoint!r} is {size - limit} bytes too long: {table}."]


def resolve(dialect: Dialect, destination: str | Address, default_schema: str) -> Address:
    """The table a destination means; a text is read as an endpoint reads it. Raises AddressNotUnderstood."""
    if isinstance(destination, Address):
        return destination
    return dialect.parse_address(destination, default_schema)
