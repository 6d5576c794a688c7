"""A shop's sixteen tools over a real public database: the retail domain of tau2-bench.

Names and parameters are those of the suite's own tools; the code is ours. Results are equal to the
recorded ones, call by call (tests/test_examples_retail.py).
"""

from __future__ import annotations

import ast
import copy
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import Field
from retail_records import Address, Database, Item, Order, Product, User, Variant, load_database

from limbeck import ToolFailed, Toolset

T = TypeVar("T")

OrderId = Annotated[str, Field(description="The order id, such as '#W0000000', with its '#'.")]
ProductId = Annotated[str, Field(description="The product id, which is not an item id.")]
ItemId = Annotated[str, Field(description="The item id, which is not a product id.")]
ItemIds = Annotated[list[str], Field(description="Ids of items of the order; may repeat.")]
NewItemIds = Annotated[
    list[str], Field(description="One for each of item_ids, of the same product.")
]
PaymentMethodId = Annotated[
    str, Field(description="One of the user's payment methods, such as 'gift_card_0000000'.")
]


def make_toolset(database: Database) -> Toolset:
    """The shop's tools over one database, which they change."""
    shop = Shop(database)
    tools = Toolset("retail", "A shop: products, users, orders.")
    for read in (
        shop.list_all_product_types,
        shop.get_product_details,
        shop.get_item_details,
        shop.get_user_details,
        shop.find_user_id_by_email,
        shop.find_user_id_by_name_zip,
        shop.get_order_details,
        calculate,
    ):
        tools.add(read, effect="read", scopes={"shop:read"})
    for write in (
        shop.modify_pending_order_address,
        shop.modify_pending_order_items,
        shop.modify_pending_order_payment,
        shop.return_delivered_order_items,
        shop.exchange_delivered_order_items,
    ):
        tools.add(write, effect="write", scopes={"orders:write"})
    tools.add(
        shop.cancel_pending_order,
        effect="destructive",
        scopes={"orders:write"},
        side_effects="Refunds all payments.",
    )
    tools.add(shop.modify_user_address, effect="write", scopes={"users:write"})
    tools.add(transfer_to_human_agents, effect="write", scopes={"users:write"})
    return tools


class Shop:
    """The rules of the shop. What it gives away is a copy: a caller cannot change the database."""

    def __init__(self, database: Database) -> None:
        self._products = database["products"]
        self._users = database["users"]
        self._orders = database["orders"]

    def list_all_product_types(self) -> dict[str, str]:
        """List the name and product id of all product types."""
        return dict(sorted((one["name"], one["product_id"]) for one in self._products.values()))

    def get_product_details(self, product_id: ProductId) -> Product:
        """Get the inventory details of a product: its variants, their price and availability."""
        return copy.deepcopy(_found(self._products, product_id, "Product"))

    def get_item_details(self, item_id: ItemId) -> Variant:
        """Get the inventory details of one item."""
        for product in self._products.values():
            if item_id in product["variants"]:
                return copy.deepcopy(product["variants"][item_id])
        raise ToolFailed("not_found", "Item not found")

    def get_user_details(self, user_id: str) -> User:
        """Get the details of a user, with the ids of their orders."""
        return copy.deepcopy(_found(self._users, user_id, "User"))

    def find_user_id_by_email(self, email: str) -> str:
        """Find a user's id by e-mail address."""
        return self._first_user(lambda user: user["email"].lower() == email.lower())

    def find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> str:
        """Find a user's id by first name, last name and zip code."""
        wanted = (first_name.lower(), last_name.lower(), zip)
        return self._first_user(lambda user: _name_zip(user) == wanted)

    def get_order_details(self, order_id: OrderId) -> Order:
        """Get the status and details of an order."""
        return copy.deepcopy(_found(self._orders, order_id, "Order"))

    def modify_user_address(
        self,
        user_id: str,
        address1: str,
        address2: str,
        city: str,
        state: str,
        country: str,
        zip: str,
    ) -> User:
        """Change the default address of a user."""
        user = _found(self._users, user_id, "User")
        user["address"] = _address(address1, address2, city, state, country, zip)
        return copy.deepcopy(user)

    def modify_pending_order_address(
        self,
        order_id: OrderId,
        address1: str,
        address2: str,
        city: str,
        state: str,
        country: str,
        zip: str,
    ) -> Order:
        """Change the shipping address of a pending order."""
        order = self._pending(order_id)
        order["address"] = _address(address1, address2, city, state, country, zip)
        return copy.deepcopy(order)

    def modify_pending_order_items(
        self,
        order_id: OrderId,
        item_ids: ItemIds,
        new_item_ids: NewItemIds,
        payment_method_id: PaymentMethodId,
    ) -> Order:
        """Change items of a pending order to others of the same products.

        Works once for an order.
        """
        order = self._orders_in("pending", order_id, "Non-pending order cannot be modified")
        old, new = self._swap(order, item_ids, new_item_ids)
        self._settle(order, payment_method_id, _difference(old, new))
        for item, variant in zip(old, new, strict=True):
            item["item_id"] = variant["item_id"]
            # The suite gives every changed item the last one's price and options; so do its
            # recorded results, and later calls of the same task build on them.
            item["price"] = new[-1]["price"]
            item["options"] = dict(new[-1]["options"])
        order["status"] = "pending (item modified)"
        return copy.deepcopy(order)

    def modify_pending_order_payment(
        self, order_id: OrderId, payment_method_id: PaymentMethodId
    ) -> Order:
        """Pay a pending order with another method, and pay the first one back."""
        order = self._pending(order_id)
        paid = order["payment_history"]
        if len(paid) != 1 or paid[0]["transaction_type"] != "payment":
            raise ToolFailed("not_paid_once", "The order must have exactly one payment")
        former, amount = paid[0]["payment_method_id"], paid[0]["amount"]
        if former == payment_method_id:
            raise ToolFailed("same_method", "The new payment method is the present one")
        self._settle(order, payment_method_id, amount)
        self._settle(order, former, -amount)
        return copy.deepcopy(order)

    def cancel_pending_order(
        self, order_id: OrderId, reason: Literal["no longer needed", "ordered by mistake"]
    ) -> Order:
        """Cancel an order that is still pending.

        Does not work for orders that are processed or delivered.
        """
        order = self._orders_in("pending", order_id, "Non-pending order cannot be cancelled")
        for payment in list(order["payment_history"]):
            self._settle(order, payment["payment_method_id"], -payment["amount"])
        order["status"], order["cancel_reason"] = "cancelled", reason
        return copy.deepcopy(order)

    def return_delivered_order_items(
        self, order_id: OrderId, item_ids: ItemIds, payment_method_id: PaymentMethodId
    ) -> Order:
        """Ask for the return of items of a delivered order; works once for an order.

        The refund goes to the order's own payment method or to a gift card.
        """
        order = self._orders_in("delivered", order_id, "Non-delivered order cannot be returned")
        self._payment_method(order, payment_method_id)
        original = order["payment_history"][0]["payment_method_id"]
        if payment_method_id != original and "gift_card" not in payment_method_id:
            raise ToolFailed("other_method", "Refund to the original method or to a gift card")
        _items(order, item_ids)
        order["status"] = "return requested"
        order["return_items"] = sorted(item_ids)
        order["return_payment_method_id"] = payment_method_id
        return copy.deepcopy(order)

    def exchange_delivered_order_items(
        self,
        order_id: OrderId,
        item_ids: ItemIds,
        new_item_ids: NewItemIds,
        payment_method_id: PaymentMethodId,
    ) -> Order:
        """Ask to exchange items of a delivered order for others of the same products.

        Works once for an order, and not after a return.
        """
        order = self._orders_in("delivered", order_id, "Non-delivered order cannot be exchanged")
        old, new = self._swap(order, item_ids, new_item_ids)
        difference = _difference(old, new)
        self._check_balance(order, payment_method_id, difference)
        order["status"] = "exchange requested"
        order["exchange_items"] = sorted(item_ids)
        order["exchange_new_items"] = sorted(new_item_ids)
        order["exchange_payment_method_id"] = payment_method_id
        order["exchange_price_difference"] = round(difference, 2)
        return copy.deepcopy(order)

    def _first_user(self, matches: Callable[[User], bool]) -> str:
        for user_id, user in self._users.items():
            if matches(user):
                return user_id
        raise ToolFailed("not_found", "User not found")

    def _orders_in(self, status: str, order_id: str, otherwise: str) -> Order:
        order = _found(self._orders, order_id, "Order")
        if order["status"] != status:
            raise ToolFailed("wrong_status", otherwise)
        return order

    def _pending(self, order_id: str) -> Order:
        """A pending order, its items modified or not."""
        order = _found(self._orders, order_id, "Order")
        if "pending" not in order["status"]:
            raise ToolFailed("wrong_status", "Non-pending order cannot be modified")
        return order

    def _swap(
        self, order: Order, item_ids: list[str], new_item_ids: list[str]
    ) -> tuple[list[Item], list[Variant]]:
        """Items of an order and, in the same order, the variants that shall replace them."""
        items = _items(order, item_ids)
        if len(items) != len(new_item_ids):
            raise ToolFailed("count", "The number of items to be exchanged should match")
        variants = []
        for item, new_id in zip(items, new_item_ids, strict=True):
            variant = self._products[item["product_id"]]["variants"].get(new_id)
            if variant is None or not variant["available"]:
                raise ToolFailed("not_available", f"New item {new_id} not found or available")
            variants.append(variant)
        return items, variants

    def _payment_method(self, order: Order, method_id: str) -> dict[str, str | float]:
        methods = self._users[order["user_id"]]["payment_methods"]
        return _found(methods, method_id, "Payment method")

    def _check_balance(self, order: Order, method_id: str, amount: float) -> None:
        """A gift card pays no more than it holds."""
        method = self._payment_method(order, method_id)
        if "gift_card" in method_id and float(method["balance"]) < amount:
            raise ToolFailed(
                "insufficient_balance",
                "Insufficient gift card balance to pay for the price difference",
            )

    def _settle(self, order: Order, method_id: str, amount: float) -> None:
        """Take an amount from a payment method, or pay it back when it is negative."""
        self._check_balance(order, method_id, amount)
        method = self._payment_method(order, method_id)
        if "gift_card" in method_id:
            method["balance"] = round(float(method["balance"]) - amount, 2)
        order["payment_history"].append(
            {
                "transaction_type": "payment" if amount > 0 else "refund",
                "amount": abs(amount),
                "payment_method_id": method_id,
            }
        )


def transfer_to_human_agents(summary: str) -> str:
    """Hand the user to a person, with a summary of what they want.

    Only when the user asks for a person, or when the tools cannot solve it.
    """
    return "Transfer successful"


def calculate(expression: str) -> float:
    """Calculate an expression of numbers, + - * / and parentheses, to two digits."""
    try:
        return round(float(_value(ast.parse(expression, mode="eval").body)), 2)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError):
        raise ToolFailed("invalid_expression", "Invalid expression") from None


def _found(table: Mapping[str, T], key: str, what: str) -> T:
    if key not in table:
        raise ToolFailed("not_found", f"{what} not found")
    return table[key]


def _items(order: Order, item_ids: list[str]) -> list[Item]:
    """Different items of an order, one for each id."""
    wanted = Counter(item_ids)
    for item_id, count in wanted.items():
        if sum(item["item_id"] == item_id for item in order["items"]) < count:
            raise ToolFailed("not_found", f"Number of {item_id} not found")
    rest = list(order["items"])
    found = []
    for item_id in item_ids:
        index = next(i for i, item in enumerate(rest) if item["item_id"] == item_id)
        found.append(rest.pop(index))
    return found


def _difference(old: list[Item], new: list[Variant]) -> float:
    """What the new ones cost more. Summed as the suite does: rounding depends on the order."""
    return sum(variant["price"] - item["price"] for item, variant in zip(old, new, strict=True))


def _name_zip(user: User) -> tuple[str, str, str]:
    name = user["name"]
    return name["first_name"].lower(), name["last_name"].lower(), user["address"]["zip"]


def _address(
    address1: str, address2: str, city: str, state: str, country: str, zip: str
) -> Address:
    return {
        "address1": address1,
        "address2": address2,
        "city": city,
        "country": country,
        "state": state,
        "zip": zip,
    }


_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def _value(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(operand))
    raise ValueError("not arithmetic")


retail = make_toolset(load_database())
