"""The first page: the verdict, the figures, what happened when, causes of death, and recent acts."""
