"""Sales sends requests to itself in plain text. For processes only: importing it configures Sales."""

from pgqueue_admin.transport import JsonSerializer, MessageContext, Serializers
from pgqueue_admin.workers.processes.registry import ProcessContext, endpoint


class PlainText:
    content_type = "text/plain"

    def dump(self, message: str) -> bytes:
        return message.encode()

    def load(self, body: bytes) -> str:
        return body.decode()


sales = endpoint("Sales")
sales.serializers = Serializers(PlainText(), JsonSerializer())
sales.instance = "node-1"


@sales.handle("Shop.QuotePrice")
def quote(article: str, context: MessageContext) -> None:
    context.reply(f"{article}: 7", type="Shop.Quoted")


@sales.companion
def ask(company: ProcessContext) -> None:
    answer = company.endpoint.ask("Sales", "lamp", type="Shop.QuotePrice").reply(timeout=60)
    with company.endpoint.connect() as session:
        session.run("insert into answers (body, content_type) values (%s, %s)", [
            answer.body, answer.headers["NServiceBus.ContentType"],
        ])  # fmt: skip
