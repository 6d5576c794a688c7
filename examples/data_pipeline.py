"""Numeric packages in scripts: 100,000 orders joined with their customers, kept as Parquet.

    python -m venv data-venv && data-venv/bin/pip install numpy pandas pyarrow
    python examples/data_pipeline.py data-venv

`open_modules` lets scripts import these packages as they are: the gate promises nothing about what
a script does through them, and the sandbox still holds.
"""

import sys
from collections.abc import Iterator
from typing import TypedDict

from limbeck import Executor, Toolset

shop = Toolset("shop", "Orders and customers of the shop.")
REGIONS = ("north", "south", "east", "west")


class Order(TypedDict):
    id: int
    customer: int
    amount: float


class Customer(TypedDict):
    customer: int
    region: str


@shop.tool(effect="read")
def orders() -> Iterator[Order]:
    """Every order, row by row."""
    for number in range(100_000):
        yield {
            "id": number,
            "customer": number % 5_000,
            "amount": number * 37 % 1_000 / 10,
        }


@shop.tool(effect="read")
def customers() -> Iterator[Customer]:
    """Every customer, row by row."""
    for number in range(5_000):
        yield {"customer": number, "region": REGIONS[number % 4]}


SCRIPT = """
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from tools import shop

orders, customers = pd.DataFrame(shop.orders()), pd.DataFrame(shop.customers())
joined = orders.merge(customers, on="customer")
joined["large"] = np.where(joined["amount"] > 90, 1, 0)
joined.to_parquet("/workspace/joined.parquet")

again = pq.read_table("/workspace/joined.parquet").to_pandas()
table = again.groupby("region").agg(
    orders=("id", "count"), total=("amount", "sum"), mean=("amount", "mean"), large=("large", "sum")
)
print(table.round(2).to_string())
print(len(again), "rows", again["customer"].nunique(), "customers")
"""


def main(environment: str, backend: str = "auto") -> None:
    """Run the script with the packages of a virtual environment."""
    executor = Executor(
        [shop],
        backend=backend,
        packages=environment,
        open_modules=["numpy", "pandas", "pyarrow"],
        limits={"profile": "data"},
    )
    with executor:
        print(executor.execute_code(SCRIPT).for_model())


if __name__ == "__main__":
    main(*sys.argv[1:])
