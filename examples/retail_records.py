"""The records of the retail example, and its database: tau2-bench's, held in memory."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import NotRequired, TypedDict

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


class Database(TypedDict):
    products: dict[str, Product]
    users: dict[str, User]
    orders: dict[str, Order]


def load_database() -> Database:
    """The database as the suite ships it."""
    data: Database = json.loads(lzma.decompress(DATABASE.read_bytes()))
    return data
