"""call_many in real sandboxes: order, errors, endless rows, effects, and how it stops."""

import asyncio
import threading

import pytest
from kit.sandboxed import execute

from limbeck import ToolFailed, Toolset
from limbeck.bridge.policy import Policy


class Shop:
    """Tools that count what happens to them."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.toolset = Toolset("shop")
        self.toolset.add(self.price, effect="read")
        self.toolset.add(self.total, effect="read")
        self.toolset.add(self.pick, effect="read")
        self.toolset.add(self.keys, effect="read")
        self.toolset.add(self.rows, effect="read")

    async def price(self, number: int) -> int:
        """Tell a price; each tenth is slower, the number 13 fails."""
        with self.lock:
            self.asked.append(number)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0.02 if number % 10 == 0 else 0.001)
            if number == 13:
                raise ToolFailed("unlucky", "no price for 13")
            return number * 2
        finally:
            with self.lock:
                self.now -= 1

    def total(self, price: int, count: int = 1) -> int:
        """Multiply."""
        return price * count

    def pick(self, names: list[str]) -> str:
        """Tell the first name."""
        return names[0]

    def keys(self, record: dict[str, int]) -> list[str]:
        """Tell the keys of a record."""
        return sorted(record)

    def rows(self, count: int):
        """Stream rows."""
        yield from range(count)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def _run(shop: Shop, script: str, **options) -> list[str]:
    result = execute(f"from tools import call_many, shop\n{script}", shop.toolset, **options)
    assert result.status == "ok", result.for_model()
    return result.printout.splitlines()


@pytest.mark.parametrize("gate", ["on", "off"])
def test_a_list_gives_a_list_in_its_order(shop: Shop, gate: str) -> None:
    script = "print(call_many(shop.price, range(100, 400)) == [n * 2 for n in range(100, 400)])"
    assert _run(shop, script, gate=gate) == ["True"]
    assert sorted(shop.asked) == list(range(100, 400))
    assert 2 <= shop.most <= 64


def test_rows_are_spread_over_the_parameters(shop: Shop) -> None:
    script = """
print(call_many(shop.total, [(2, 3), {"price": 4, "count": 5}, 7, (8,)]))
print(call_many(shop.pick, [["a", "b"], (["c"],)]))
print(call_many(shop.keys, [{"b": 1, "a": 2}]))
print(call_many(shop.total, []), call_many(shop.price, {3, 3}), call_many(shop.price, {4: "x"}))
"""
    assert _run(shop, script) == ["[6, 20, 7, 8]", "['a', 'c']", "[['a', 'b']]", "[] [6] [8]"]


def test_an_iterator_gives_an_iterator_that_asks_only_so_far_ahead(shop: Shop) -> None:
    script = """
import itertools
results = call_many(shop.price, itertools.count(100), concurrency=4)
print(type(results).__name__, [next(results) for _ in range(50)] == [n * 2 for n in range(100, 150)])
results.close()
print(list(call_many(shop.price, (n for n in range(20, 25)))))
lazy = call_many(shop.price, iter([7]))
"""
    assert _run(shop, script) == ["generator True", "[40, 42, 44, 46, 48]"]
    assert shop.most <= 5
    assert max(shop.asked) < 200
    assert 7 not in shop.asked


def test_the_first_error_is_raised_when_all_under_way_have_ended(shop: Shop) -> None:
    script = """
try:
    call_many(shop.price, range(10, 1000), concurrency=8)
except ToolFailed as error:
    print(error.error, error.__notes__)
print(call_many(shop.price, [1]))
"""
    assert _run(shop, script) == ["unlucky ['call_many: row 3']", "[2]"]
    assert len(shop.asked) < 100
    assert shop.now == 0


def test_errors_stand_in_their_places_when_asked_for(shop: Shop) -> None:
    script = """
results = call_many(shop.price, [12, 13, "x", 14, (1, 2)], return_exceptions=True)
print([one if isinstance(one, int) else type(one).__name__ for one in results])
"""
    assert _run(shop, script) == ["[24, 'ToolFailed', 'InvalidArguments', 28, 'InvalidArguments']"]


def test_what_it_cannot_do_is_said(shop: Shop) -> None:
    script = """
for call in (lambda: call_many(len, [1]), lambda: call_many(lambda n: shop.price(n), [1]),
             lambda: call_many(shop.rows, [1]), lambda: call_many(shop.price, [1], concurrency=0),
             lambda: call_many(shop.price, 5)):
    try:
        call()
    except TypeError as error:
        print(error)
"""
    lines = _run(shop, script)
    assert "call_many(orders.get_order, rows)" in lines[0]
    assert lines[1] == lines[0]
    assert "shop.rows streams its rows" in lines[2]
    assert "concurrency is a whole number above 0" in lines[3]
    assert "not iterable" in lines[4]
    assert shop.asked == []


def test_rows_that_fail_or_call_tools_themselves(shop: Shop) -> None:
    script = """
def rows():
    for n in range(20, 30):
        yield shop.price(n)
    raise KeyError("rows")
done = []
try:
    for one in call_many(shop.price, rows(), concurrency=3):
        done.append(one)
except KeyError as error:
    print(error)
print(len(done) > 0, shop.price(1))
"""
    assert _run(shop, script) == ["'rows'", "True 2"]
    assert shop.now == 0


def test_policy_meets_each_call(shop: Shop) -> None:
    from limbeck.bridge.budget import Budget

    script = """
results = call_many(shop.total, [(n,) for n in range(50)], return_exceptions=True)
print(sum(isinstance(one, BudgetExceeded) for one in results))
"""
    policy = Policy(budget=Budget(calls=30))
    result = execute(f"from tools import call_many, shop\n{script}", shop.toolset, policy=policy)
    assert result.printout == "20\n"
    assert (result.calls.succeeded, result.calls.denied) == (30, 20)


def test_threads_use_it_side_by_side(shop: Shop) -> None:
    script = """
from concurrent.futures import ThreadPoolExecutor
def work(start):
    return call_many(shop.price, range(start, start + 40)) == [n * 2 for n in range(start, start + 40)]
with ThreadPoolExecutor(6) as pool:
    print(all(pool.map(work, range(100, 700, 100))))
"""
    assert _run(shop, script) == ["True"]


def test_the_end_of_the_bridge_ends_it(shop: Shop) -> None:
    result = execute(
        "from tools import call_many, shop\nimport itertools\n"
        "for one in call_many(shop.price, itertools.count(100)): pass",
        shop.toolset,
        limits={"wall": 1.0},
    )
    assert result.status == "timeout"
    assert shop.now == 0


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_many_calls_complete_by_default_in_bounded_memory(shop: Shop, count: int) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    script = f"print(sum(call_many(shop.total, iter(range({count})))))"
    assert _run(shop, script) == [str(sum(range(count)))]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 60 * 1024
