"""A shop's tools over a real public database: the retail domain of tau2-bench, held in memory.

Names and parameters are those of the suite's own tools; the code is ours. Results are equal to the
recorded ones, call by call (tests/test_examples_retail.py).
"""

from __future__ import annotations

import ast
import copy
import json
import lzma
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from pydantic import Field

from limbeck import ToolFailed, Toolset

DATABASE = Path(__file__).parent / "data" / "retail_db.json.xz"


class Variant(TypedDict):
    item_id: str
    options: dict[str, str]
    available: bool
    price: float


class Product(TypedDict):
    name: str
    product_id: str
    variants: dict[str, Variant]


class Address(TypedDict):
    address1: str
    address2: str
    city: str
    country: str
    state: str
    zip: str


class User(TypedDict):
    user_id: str
    name: dict[str, str]
    address: Address
    email: str
    payment_methods: dict[str, dict[str, str | float]]
    orders: list[str]


class Item(TypedDict):
    name: str
    product_id: str
    item_id: str
    price: float
    options: dict[str, str]


class Payment(TypedDict):
    transaction_type: str
    amount: float
    payment_method_id: str


class Order(TypedDict):
    order_id: str
    user_id: str
    address: Address
    items: list[Item]
    status: str
    fulfillments: list[dict[str, list[str]]]
    payment_history: list[Payment]
    cancel_reason: NotRequired[str | None]
    exchange_items: NotRequired[list[str] | None]
    exchange_new_items: NotRequired[list[str] | None]
    exchange_payment_method_id: NotRequired[str | None]
    exchange_price_difference: NotRequired[float | None]
    return_items: NotRequired[list[str] | None]
    return_payment_method_id: NotRequired[str | None]


OrderId = Annotated[str, Field(description="The order id, such as '#W0000000', with its '#'.")]
ProductId = Annotated[str, Field(description="The product id, which is not an item id.")]


def load_database() -> dict[str, Any]:
    """The database as the suite ships it."""
    data: dict[str, Any] = json.loads(lzma.decompress(DATABASE.read_bytes()))
    return data


def make_toolset(database: dict[str, Any]) -> Toolset:
    """The shop's tools over one database, which they change."""
    shop = Toolset("retail", "A shop: products, users, orders.")
    products, users, orders = database["products"], database["users"], database["orders"]

    @shop.tool(effect="read")
    def list_all_product_types() -> dict[str, str]:
        """List the name and product id of all product types."""
        return dict(sorted((one["name"], one["product_id"]) for one in products.values()))

    @shop.tool(effect="read")
    def get_product_details(product_id: ProductId) -> Product:
        """Get the inventory details of a product: its variants, their price and availability."""
        return _found(products, product_id, "Product")

    @shop.tool(effect="read")
    def get_item_details(item_id: str) -> Variant:
        """Get the inventory details of one item.

        Args:
            item_id: The item id, which is not a product id.
        """
        for product in products.values():
            if item_id in product["variants"]:
                return product["variants"][item_id]
        raise ToolFailed("not_found", "Item not found")

    @shop.tool(effect="read")
    def get_user_details(user_id: str) -> User:
        """Get the details of a user, with the ids of their orders."""
        return _found(users, user_id, "User")

    @shop.tool(effect="read")
    def find_user_id_by_email(email: str) -> str:
        """Find a user's id by e-mail address."""
        return _first_user(users, lambda user: user["email"].lower() == email.lower())

    @shop.tool(effect="read")
    def find_user_id_by_name_zip(first_name: str, last_name: str, zip: str) -> str:
        """Find a user's id by first name, last name and zip code."""
        wanted = (first_name.lower(), last_name.lower(), zip)
        return _first_user(users, lambda user: _name_zip(user) == wanted)

    @shop.tool(effect="read")
    def get_order_details(order_id: OrderId) -> Order:
        """Get the status and details of an order."""
        return _found(orders, order_id, "Order")

    @shop.tool(effect="read")
    def calculate(expression: str) -> float:
        """Calculate an expression of numbers, + - * / and parentheses, to two digits."""
        try:
            return round(float(_value(ast.parse(expression, mode="eval").body)), 2)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
            raise ToolFailed("invalid_expression", "Invalid expression") from None

    @shop.tool(effect="write", scopes={"users:write"})
    def modify_user_address(
        user_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> User:
        """Change the default address of a user."""
        user = _found(users, user_id, "User", copied=False)
        user["address"] = {
            "address1": address1,
            "address2": address2,
            "city": city,
            "country": country,
            "state": state,
            "zip": zip,
        }
        return copy.deepcopy(user)

    @shop.tool(effect="destructive", scopes={"orders:write"}, side_effects="Refunds all payments.")
    def cancel_pending_order(
        order_id: OrderId, reason: Literal["no longer needed", "ordered by mistake"]
    ) -> Order:
        """Cancel an order that is still pending.

        Does not work for orders that are processed or delivered.
        """
        order = _found(orders, order_id, "Order", copied=False)
        if order["status"] != "pending":
            raise ToolFailed("not_pending", "Non-pending order cannot be cancelled")
        _refund(order, users)
        order["status"], order["cancel_reason"] = "cancelled", reason
        return copy.deepcopy(order)

    return shop


def _found(table: dict[str, Any], key: str, what: str, *, copied: bool = True) -> Any:
    if key not in table:
        raise ToolFailed("not_found", f"{what} not found")
    return copy.deepcopy(table[key]) if copied else table[key]


def _first_user(users: dict[str, Any], matches: Callable[[Any], bool]) -> str:
    for user_id, user in users.items():
        if matches(user):
            return user_id
    raise ToolFailed("not_found", "User not found")


def _name_zip(user: dict[str, Any]) -> tuple[str, str, str]:
    name = user["name"]
    return name["first_name"].lower(), name["last_name"].lower(), user["address"]["zip"]


def _refund(order: dict[str, Any], users: dict[str, Any]) -> None:
    """Pay everything back, each sum to where it came from."""
    methods = users[order["user_id"]]["payment_methods"]
    refunds = []
    for payment in order["payment_history"]:
        method = payment["payment_method_id"]
        refunds.append({**payment, "transaction_type": "refund"})
        if "gift_card" in method:
            methods[method]["balance"] = round(methods[method]["balance"] + payment["amount"], 2)
    order["payment_history"] += refunds


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
