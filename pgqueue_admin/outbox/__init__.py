"""The outbox: a handler's writes and sends happen exactly once, however often its message is delivered.

``EndpointSettings(transaction_mode="receive_only", outbox=Outbox())``. Needs no Django.
"""

from pgqueue_admin.outbox.endpoint_outbox import Outbox

__all__ = ["Outbox"]
