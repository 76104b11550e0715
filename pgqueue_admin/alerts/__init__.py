"""Warnings and who was notified: warning kinds, their evaluation, the alerter and its mails."""
