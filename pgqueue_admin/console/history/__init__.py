"""History: finished messages of years, how far the files are, and days counted anew."""
