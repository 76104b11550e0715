"""Operating system functions for processes: children, priorities, processors, private folders."""
