"""What happens to one received message: it is read, given to its handlers, audited."""
