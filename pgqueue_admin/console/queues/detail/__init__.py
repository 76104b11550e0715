"""What the page of one queue says: its figures, its history as charts, its head and tail, who consumes it."""
