"""An operation made ready for its page: the frozen set, its progress, the outcome of each message."""
