"""What the system noticed, and who was told: warning kinds, their evaluation, the alerter and its mails."""
