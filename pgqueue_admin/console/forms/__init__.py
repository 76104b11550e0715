"""What a person may send, read and judged field by field."""
