"""The table of queues: its rows, how they are judged and ordered, and the HTML of each cell."""
