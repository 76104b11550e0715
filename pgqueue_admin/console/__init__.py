"""The console's pages, a folder per noun. Modules that several folders share lie at the top."""
