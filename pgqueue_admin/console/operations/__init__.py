"""An operation prepared for its page: the frozen set, its progress, the outcome of each message."""
