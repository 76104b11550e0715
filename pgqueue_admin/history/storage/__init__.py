"""Files of history: where they lie, which of them count, how long they are kept, and what lies in them."""
