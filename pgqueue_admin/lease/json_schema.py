"""JSON Schema per kind of message: a misfit is rejected with the path that does not fit."""

from collections.abc import Callable, Mapping
from typing import Any

from pgqueue_admin.lease.errors import Rejected

Check = Callable[[Any], None]

_SCHEMES = ("http", "https", "ftp", "file")


def compiled(schema: Mapping[str, Any] | None) -> Check:
    """Raises Rejected when it is called with what does not fit. Raises ValueError for a schema that is none."""
    if schema is None:
        return lambda message: None
    import fastjsonschema  # for those who have schemas

    refused = dict.fromkeys(_SCHEMES, _refuse_reference)
    try:
        fits = fastjsonschema.compile(dict(schema), handlers=refused, use_default=False)
    except fastjsonschema.JsonSchemaDefinitionException as error:
        raise ValueError(f"not a JSON schema: {error}") from error

    def check(message: Any) -> None:
        try:
            fits(message)
        except fastjsonschema.JsonSchemaValueException as error:
            raise Rejected(f"{_pointer(error.path)}: {error.message}") from None
        except RecursionError:
            raise Rejected("The message is too deep for its schema.") from None

    return check


def _pointer(path: list[Any]) -> str:
    """As RFC 6901 writes it; / for the whole message."""
    return "/" + "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in path[1:])


def _refuse_reference(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {uri}: write it under $defs")
