"""The MCP door through the SDK's own client, the server as a subprocess."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from limbeck import AsyncExecutor, Toolset
from limbeck.serve import mcp_server

TOOLS = """
from limbeck import Toolset
shop = Toolset("shop", "A shop.")

@shop.tool(effect="read")
async def price(name: str) -> float:
    '''Tell a price.'''
    return {"tea": 2.5}[name]
"""


def _client(folder: Path, *options: str) -> Client:
    (folder / "shop.py").write_text(TOOLS)
    return Client(
        stdio_client(
            StdioServerParameters(
                command=sys.executable,
                args=["-m", "limbeck", "serve", "--tools", str(folder / "shop.py"), "--backend",
                      "bubblewrap", "--limit", "wall=20", *options],
                env={**os.environ, "XDG_CONFIG_HOME": str(folder)},
                cwd=str(folder),
            )
        )
    )  # fmt: skip


def _run(test) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(bounded())


def test_one_tool_that_runs_scripts(tmp_path: Path) -> None:
    async def test() -> None:
        async with _client(tmp_path) as client:
            (tool,) = (await client.list_tools()).tools
            assert tool.name == "execute_code"
            assert "price(name: str)" in tool.description
            assert tool.annotations.destructive_hint is True
            assert list(tool.input_schema["properties"]) == ["code"]
            script = "from tools import shop\nprint(shop.price('tea'))"
            result = await client.call_tool("execute_code", {"code": script})
            assert [part.text for part in result.content] == ["2.5"]
            assert result.structured_content["calls"]["succeeded"] == 1
            assert not result.is_error
            failed = await client.call_tool("execute_code", {"code": "1 / 0"})
            assert failed.is_error
            assert "ZeroDivisionError" in failed.content[0].text
            refused = await client.call_tool("execute_code", {"code": "import socket"})
            assert "Nothing ran." in refused.content[0].text
            wrong = await client.call_tool("execute_code", {"source": "1"})
            assert wrong.is_error

    _run(test)


def test_printed_lines_are_progress(tmp_path: Path) -> None:
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async def test() -> None:
        async with _client(tmp_path) as client:
            script = "import time\nfor n in range(3):\n    print('step', n)\n    time.sleep(0.1)"
            await client.call_tool("execute_code", {"code": script}, progress_callback=hear)

    _run(test)
    assert [line for text in heard for line in text.split("\n")] == ["step 0", "step 1", "step 2"]


def test_cancelling_kills_the_sandbox(tmp_path: Path) -> None:
    async def test() -> None:
        async with _client(tmp_path) as client:
            heard = asyncio.Event()

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.set()

            script = "print('began')\nwhile True: pass"
            call = asyncio.create_task(
                client.call_tool("execute_code", {"code": script}, progress_callback=hear)
            )
            await heard.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            # The next call is served at once: the loop of the server was never blocked.
            result = await client.call_tool("execute_code", {"code": "print(1)"})
            assert result.content[0].text.startswith("1\n[warning: the session's state")
            assert result.structured_content["warnings"][0]["code"] == "state_gone"

    _run(test)


def _text(result) -> str:
    return result.content[0].text


def test_a_connection_is_a_session(tmp_path: Path) -> None:
    async def test() -> None:
        async with _client(tmp_path) as client, _client(tmp_path) as other:
            (tool,) = (await client.list_tools()).tools
            assert "still there in your next call" in tool.description
            assert "stopped by a limit" in tool.description

            async def run(code: str, who: Client = client):
                return await who.call_tool("execute_code", {"code": code})

            await run("from tools import shop\nx = shop.price('tea')\nopen('f', 'w').write('1')")
            assert _text(await run("print(x, open('f').read())")) == "2.5 1"
            result = await run("print(x)", other)
            assert "NameError" in _text(result)
            # Calls that come together run in turn.
            several = await asyncio.gather(*(run(f"x += 1\nprint(x, {n})") for n in range(3)))
            assert sorted(_text(one).split()[0] for one in several) == ["3.5", "4.5", "5.5"]
            numbers = [one.structured_content["session_id"] for one in several]
            assert len(set(numbers)) == 1

    _run(test)


def test_single_use_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("sessions = false\n")

    async def test() -> None:
        for options in (["--single-use"], ["--config", str(tmp_path / "own.toml")]):
            async with _client(tmp_path, *options) as client:
                (tool,) = (await client.list_tools()).tools
                assert "last as long as the script" in tool.description
                await client.call_tool("execute_code", {"code": "x = 1"})
                result = await client.call_tool("execute_code", {"code": "print(x)"})
                assert "NameError" in _text(result)
                assert result.structured_content["session_id"] is None

    _run(test)


def test_a_script_that_prints_nothing_says_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "SILENCE_SECONDS", 0.3)
    shop = Toolset("shop", "A shop.")

    @shop.tool(effect="read")
    async def price(name: str) -> float:
        """Tell a price, slowly."""
        await asyncio.sleep(0.01)
        return 2.5

    script = "from tools import shop\nfor _ in range(150): shop.price('tea')\nprint('done')"
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(str(message))

    async def test() -> None:
        async with AsyncExecutor([shop], backend="bubblewrap") as executor:
            server = mcp_server.make_server(executor)
            async with Client(server) as client:
                await client.call_tool("execute_code", {"code": script}, progress_callback=hear)

    _run(test)
    assert heard[-1] == "done"
    assert re.fullmatch(r"\d+ calls?, \d+ s of 60 s", heard[0])
