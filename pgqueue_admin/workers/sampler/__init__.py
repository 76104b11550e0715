"""The process that measures queues, and how samples are stored."""
