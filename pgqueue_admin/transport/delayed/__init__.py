"""Messages that are sent later: where they wait, who moves them when due, and how they go on from there."""
