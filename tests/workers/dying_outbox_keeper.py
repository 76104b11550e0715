"""The outbox keeper with short pauses: dying_outbox_keeper.py AT. It kills itself at that record; 0 lets it live."""

import sys

import django

from tests.kill_points import dies

if __name__ == "__main__":
    django.setup()
    from pgqueue_admin.services.outbox.checked_outbox import CheckedOutbox
    from pgqueue_admin.workers.processes import outbox_keeper_process

    outbox_keeper_process.EVERY = 0.1
    if at := int(sys.argv[1]):
        dies(CheckedOutbox, "_send", False, at)
    outbox_keeper_process.run()
