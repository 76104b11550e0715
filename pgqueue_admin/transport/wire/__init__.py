"""The wire format of messages: headers, addresses, bodies, times, ids."""
