"""Masking: rules that hide parts of what messages say, and where each of them finds its part."""
