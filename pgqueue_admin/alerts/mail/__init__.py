"""Mails about warnings: composed, limited, sent, and their settings."""
