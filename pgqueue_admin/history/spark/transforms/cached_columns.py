"""Columns are made once: each is a dozen questions to Java, and a batch has hundreds of them, however small it is.

They say what they are made of and not of which frame, so all frames can share them; a process has one Java at most.
"""

from functools import cache as once

__all__ = ["once"]
