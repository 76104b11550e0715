"""How messages are taken from a queue: looked for, and received in slots, in one of the transaction modes."""
