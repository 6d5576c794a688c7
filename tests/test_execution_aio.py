"""tools.aio in real sandboxes: gather, streams, threads beside it, cancelling, errors."""

import asyncio
import threading

import pytest
from kit.sandboxed import BACKENDS, ON_BOTH, execute

from limbeck import ToolFailed, Toolset

seen: list[str] = []
now = [0, 0]
shop = Toolset("shop")
stock = Toolset("stock")


@shop.tool(effect="read")
async def price(number: int) -> int:
    """Tell a price; the number 13 fails."""
    now[0] += 1
    now[1] = max(now)
    await asyncio.sleep(0.005)
    now[0] -= 1
    if number == 13:
        raise ToolFailed("unlucky", "no price for 13")
    return number * 2


@shop.tool(effect="read")
async def hang() -> None:
    """Wait until cancelled."""
    try:
        await asyncio.sleep(3_600)
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


@shop.tool(effect="read")
def rows(count: int):
    """Stream rows."""
    try:
        yield from range(count)
    finally:
        seen.append("closed")


@stock.tool(effect="read")
def count(name: str) -> int:
    """Count."""
    return len(name)


def _run(script: str, **options) -> list[str]:
    now[:] = [0, 0]
    result = execute(script, shop, stock, **options)
    assert result.status == "ok", result.for_model()
    return result.printout.splitlines()


@pytest.mark.parametrize("gate", ["on", "off"])
def test_gather_runs_side_by_side(gate: str) -> None:
    script = """
import asyncio
from tools.aio import shop as ashop, stock
from tools import shop, aio
print(await ashop.price(4), shop.price(4), await aio.stock.count("abc"), await stock.count(name="ab"))
print(await asyncio.gather(*(ashop.price(n) for n in range(100, 400))) == [n * 2 for n in range(100, 400)])
"""
    assert _run(script, gate=gate) == ["8 8 3 2", "True"]
    assert 2 <= now[1] <= 64


def test_rows_stream_to_async_for() -> None:
    seen.clear()
    script = """
import asyncio
from tools.aio import shop
total = 0
async for row in shop.rows(20_000):
    total += row
print(total)
stream = shop.rows(10**9)
async for row in stream:
    if row == 5_000:
        break
await stream.aclose()
one, two = shop.rows(3), shop.rows(3)
print([(await anext(one), await anext(two)) for _ in range(3)])
"""
    assert _run(script) == ["199990000", "[(0, 0), (1, 1), (2, 2)]"]
    assert seen.count("closed") == 4


def test_errors_are_raised_where_they_are_awaited() -> None:
    script = """
import asyncio
from tools.aio import shop
results = await asyncio.gather(shop.price(13), shop.price(1), shop.price("x"), return_exceptions=True)
print([one if isinstance(one, int) else type(one).__name__ for one in results])
try:
    await shop.price()
except InvalidArguments as error:
    print("number" in str(error))
try:
    from tools.aio import zz
except ImportError as error:
    print(type(error).__name__)
try:
    shop.zz
except UnknownTool as error:
    print(hasattr(shop, "zz"))
"""
    assert _run(script) == ["['ToolFailed', 2, 'InvalidArguments']", "True", "UnknownTool", "False"]


def test_a_cancelled_await_cancels_the_call() -> None:
    seen.clear()
    script = """
import asyncio
from tools.aio import shop
try:
    await asyncio.wait_for(shop.hang(), 0.2)
except TimeoutError:
    print("timeout")
print(await shop.price(2))
"""
    assert _run(script) == ["timeout", "4"]
    assert seen == ["cancelled"]


def test_threads_and_loops_side_by_side() -> None:
    script = """
import asyncio, threading
from tools import call_many, shop
from tools.aio import shop as ashop
wrong = []
def in_a_thread(start):
    for n in range(start, start + 30):
        if shop.price(n) != n * 2: wrong.append(n)
def in_a_loop(start):
    async def main():
        return await asyncio.gather(*(ashop.price(n) for n in range(start, start + 30)))
    if asyncio.run(main()) != [n * 2 for n in range(start, start + 30)]: wrong.append(start)
def many(start):
    if call_many(shop.price, range(start, start + 30)) != [n * 2 for n in range(start, start + 30)]: wrong.append(start)
threads = [threading.Thread(target=work, args=(1_000 * k + 100,))
           for k in range(3) for work in (in_a_thread, in_a_loop, many)]
for one in threads: one.start()
for one in threads: one.join()
print(wrong)
"""
    assert _run(script) == ["[]"]


def test_the_end_of_the_bridge_wakes_a_loop() -> None:
    script = "from tools.aio import shop\nimport asyncio\nawait asyncio.gather(*(shop.hang() for _ in range(5)))"
    result = execute(script, shop, limits={"wall": 1.0})
    assert result.status == "timeout"
    assert threading.active_count() < 100


@ON_BOTH
def test_a_thread_that_reads_first_leaves_the_loop_nothing_to_wait_for(where: str) -> None:
    """The loop is told that there is something to read; another thread may have read it since."""
    script = """
import asyncio
from tools import shop
from tools.aio import shop as ashop, stock
for turn in range(150):
    await asyncio.gather(stock.count("ab"), asyncio.to_thread(shop.price, 2))
print("done")
"""
    assert _run(script, backend=BACKENDS[where]) == ["done"]


def test_ended_loops_are_forgotten() -> None:
    script = """
import asyncio, gc
from tools.aio import stock
for _ in range(30):
    asyncio.run(stock.count("ab"))
gc.collect()
print(sum(isinstance(one, asyncio.AbstractEventLoop) for one in gc.get_objects()) < 5)
"""
    assert _run(script) == ["True"]


def test_a_coroutine_tool_has_ended_when_the_result_is_there() -> None:
    ends: list[str] = []
    box = Toolset("box")

    @box.tool(effect="write")
    async def slow_to_stop() -> None:
        """Clean up for a while when cancelled."""
        try:
            await asyncio.sleep(3_600)
        finally:
            await asyncio.sleep(0.5)
            ends.append("cleaned up")

    script = "from tools import box\nbox.slow_to_stop()"
    result = execute(script, box, limits={"wall": 1.0})
    assert result.status == "timeout"
    assert ends == ["cleaned up"]
