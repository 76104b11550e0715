"""Settings as this console runs with them, and rules of retries."""
