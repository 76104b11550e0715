"""A process that receives a message, prints it, and holds it until killed."""

import sys
import threading

from pgqueue_admin.transport import Endpoint, Handlers

handlers = Handlers()


@handlers.handle("Shop.PlaceOrder")
def place(order, context):
    context.send("error", order, type="Shop.Never")
    print(context.message.row_id, context.message.seq, flush=True)
    threading.Event().wait()


Endpoint("Sales", sys.argv[1], handlers=handlers).run()
