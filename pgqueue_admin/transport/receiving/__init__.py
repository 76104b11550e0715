"""Receiving from a queue: peek, and receive in worker slots, in one of the transaction modes."""
