"""SQL Server: names, and statements as text."""
