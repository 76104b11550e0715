"""What kinds of failure are there, what is new, and whose is it?"""
