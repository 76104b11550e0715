"""A worker of the lease queue without Django: python examples/lease/worker.py postgresql://user@host/database"""

import sys

from pgqueue_admin.lease import LeaseHandlers, LeaseWorker

handlers = LeaseHandlers()
lease_handler = handlers.handle


@lease_handler("render", schema={"required": ["asset"], "properties": {"width": {"type": "integer"}}})
def render(message, lease):
    print("rendered", message["asset"], flush=True)
    return {"bytes": 4096}


LeaseWorker("thumbs", sys.argv[1], handlers).run()
