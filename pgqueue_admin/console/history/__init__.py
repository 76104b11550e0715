"""History: finished messages of past years, how far the files reach, and days to be recomputed."""
