"""How long the engine waits for the server, and the server for its own work."""

ANSWER_SECONDS = 30.0  # as the original; what has no answer by then is said, not waited for in silence
SERVERS_SHARE = 5 / 6  # of it: where no handler asks the server itself ends what is too slow, and says why
