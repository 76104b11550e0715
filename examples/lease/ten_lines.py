"""The lease queue without Django: python examples/lease/ten_lines.py postgresql://user@host/database"""

import sys

from pgqueue_admin.lease import LeaseQueue

queue = LeaseQueue(sys.argv[1], name="thumbs")
queue.publish({"kind": "render", "asset": "kettle.png"})
for lease in queue.claim(10, lock_for=30):
    print("rendered", lease.message["asset"], flush=True)
    ended = queue.finish(lease, "success", details={"bytes": 4096})
    print(ended.result if ended else "somebody else has it", flush=True)
queue.close()
