"""What the start of a process leaves is never garbage, and full collections would walk all of it, again and again."""

import gc


def settle() -> None:
    """Once all is imported: amid pages or messages such a walk takes many milliseconds."""
    gc.collect()
    gc.freeze()
