"""Type names, also generic ones as recorded (wire sheet 7.1)."""

import pytest

from pgqueue_admin.transport.wire.headers import enclosed_type, enclosed_types
from pgqueue_admin.transport.wire.type_names import full_name, short_type, split_types

ASSEMBLY = "Shop.Messages, Version=1.4.0.0, Culture=neutral, PublicKeyToken=null"
GENERIC = f"Shop.Sales.StockServiceException`1[[Shop.Messages.Commands.ReserveStock, {ASSEMBLY}]]"


def test_types_of_an_event():
    headers = {
        "NServiceBus.EnclosedMessageTypes": (
            f"Shop.Messages.Events.OrderPlaced, {ASSEMBLY};Shop.Messages.IEvent, {ASSEMBLY}"
        )
    }
    assert enclosed_types(headers) == ("Shop.Messages.Events.OrderPlaced", "Shop.Messages.IEvent")
    assert enclosed_type(headers) == "Shop.Messages.Events.OrderPlaced"


@pytest.mark.parametrize(
    "headers", [{}, {"NServiceBus.EnclosedMessageTypes": None}, {"NServiceBus.EnclosedMessageTypes": " ; "}]
)
def test_no_type(headers):
    assert enclosed_types(headers) == ()
    assert enclosed_type(headers) == ""


def test_commas_and_semicolons_inside_brackets_belong_to_the_name():
    assert full_name(f"{GENERIC}, {ASSEMBLY}") == GENERIC
    assert split_types(f"{GENERIC}, {ASSEMBLY};A.B, {ASSEMBLY}") == [f"{GENERIC}, {ASSEMBLY}", f"A.B, {ASSEMBLY}"]
    assert full_name("A`1[[B;C, D]], E") == "A`1[[B;C, D]]"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("", ""),
        ("PlaceOrder", "PlaceOrder"),
        (f"Shop.PlaceOrder, {ASSEMBLY}", "PlaceOrder"),
        ("Shop.Billing.PaymentGateway+RefusedException", "PaymentGateway+RefusedException"),
        (GENERIC, "StockServiceException<ReserveStock>"),
        ("System.Func`2[[System.Int32, mscorlib],[A.B`1[[C.D, e]], f]]", "Func<Int32, B<D>>"),
        ("System.Func`2", "Func"),
        ("A.Outer`1+Inner[[C.D, e]]", "Outer+Inner<D>"),
        ("A.B`1[[broken", "B"),
        ("unbalanced]], x", "unbalanced]]"),
        ("A`1[[" * 4 + "B" + "]]" * 4, "A<A<A<A<B>>>>"),
        ("A`1[[" * 5000 + "B" + "]]" * 5000, "A<A<A<A<A<A<…>>>>>>"),
    ],
)
def test_short(name, short):
    assert short_type(name) == short
