"""What the first page says: the verdict, the figures, what happened when, what died of what, who did what."""
