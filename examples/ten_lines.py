"""An endpoint without Django: python examples/ten_lines.py postgresql://user@host/database"""

import sys

from pgqueue_admin.transport import Endpoint, Handlers

handlers = Handlers()


@handlers.handle("Shop.PlaceOrder")
def place_order(order, context):
    print("placed", order["number"], flush=True)


endpoint = Endpoint("Sales", sys.argv[1], handlers=handlers)
endpoint.create_queues()
endpoint.send("Sales", {"number": 42}, type="Shop.PlaceOrder")
endpoint.run()
