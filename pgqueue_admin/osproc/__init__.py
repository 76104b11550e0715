"""What is asked of the operating system about processes: children, priorities, processors, private folders."""
