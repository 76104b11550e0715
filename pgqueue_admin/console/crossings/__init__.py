"""What set out for another database, or from there, and is not known yet."""
