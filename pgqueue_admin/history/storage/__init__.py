"""Files of history: where they are, which of them count, how long they are kept, and what they contain."""
