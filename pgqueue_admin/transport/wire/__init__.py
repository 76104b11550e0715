"""What a message is on the wire: its headers, addresses, bodies, times and ids."""
