"""Settings that this console runs with, and rules of retries."""
