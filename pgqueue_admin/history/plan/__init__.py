"""What is done next, exactly: rows, each of them once whatever a server does meanwhile; and days to be counted anew."""
