#!/usr/bin/env python
"""The command line, in a checkout."""

from pgqueue_admin.config.command_line import main

if __name__ == "__main__":
    main()
