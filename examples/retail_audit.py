"""The main job on real input: a catalogue audit by one script, next to individual tool calls.

The tools run over the retail database of tau2-bench; the script lists the product types, reads
every product and prints those with fewer than five variants in stock. `make demo` runs this file.

An audit only reads, so only the tools that read are in the context, whichever way it is done; and
execute_code's definition holds their whole stubs, with the fields that the script uses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from retail import retail

from limbeck import Catalog, CodeTool, ExecutionResult, Executor
from limbeck.benchmark.tokens import Cost, call_text, cost, tokenizer

SCRIPT = (Path(__file__).parent / "audit_script.py").read_text()


def main() -> None:
    """Run the audit and show what it cost, side by side."""
    with Executor([retail], scopes={"shop:read"}) as executor:
        result = executor.execute_code(SCRIPT)
        if result.status != "ok":
            sys.exit(result.for_model())
        definition = CodeTool(executor).tool_spec("openai")
        catalog = executor.catalog
    print(result.printout)
    show_cost(catalog, json.dumps(definition), result)
    print(
        f"\n{result.calls.started} tool calls in {result.usage.wall:.2f} s inside "
        f"{result.sandbox.backend} ({result.sandbox.memory_limit}), "
        f"{result.usage.cpu:.2f} s of CPU with the sandbox's start"
    )


def show_cost(catalog: Catalog, definition: str, result: ExecutionResult) -> None:
    """Print what enters a model's context in each of three ways."""
    tokens = tokenizer()
    listed, details = individual_calls(catalog)
    tools = json.dumps(definitions(catalog))
    script = (json.dumps({"code": SCRIPT}), result.for_model())
    one_by_one = cost(tokens, tools, [listed, *([call] for call in details)])
    batched = cost(tokens, tools, [listed, details])
    show(one_by_one, batched, cost(tokens, definition, [[script]]), tokens.name)


def definitions(catalog: Catalog) -> list[dict[str, Any]]:
    """The tools as a model gets them when it calls each itself."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.spec.name,
                "description": tool.spec.description,
                "parameters": tool.spec.input_schema,
            },
        }
        for toolset in catalog.toolsets
        for tool in toolset.tools
    ]


def individual_calls(catalog: Catalog) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The audit by individual calls: what a model would write and what would come back.

    The details' calls know their arguments only when the list is there: two messages at least.
    """

    def call(name: str, **arguments: Any) -> tuple[str, str]:
        tool = catalog.tool(f"retail.{name}")
        text = tool.write_result(tool.handler(**arguments)).decode()
        return call_text(name, arguments), text

    listed = call("list_all_product_types")
    ids = json.loads(listed[1]).values()
    return [listed], [call("get_product_details", product_id=one) for one in ids]


def show(one_by_one: Cost, batched: Cost, code: Cost, counted_with: str) -> None:
    """A table of the three ways."""
    ways = (one_by_one, batched, code)
    rows = [
        ("tool definitions", [way.definitions for way in ways]),
        ("calls / script", [way.sent for way in ways]),
        ("results / printout", [way.returned for way in ways]),
        ("in the context at the end", [way.context for way in ways]),
        ("input summed over requests", [way.summed_input for way in ways]),
        ("requests to the model", [way.requests for way in ways]),
    ]
    heads = ("calls one by one", "calls batched", "execute_code")
    print(f"{f'tokens ({counted_with})':28}" + "".join(f"{head:>18}" for head in heads))
    for name, values in rows:
        print(f"{name:28}" + "".join(f"{value:18,}" for value in values))
    against = [1 - code.summed_input / way.summed_input for way in (one_by_one, batched)]
    print("{:28}{:>18.1%}{:>18.1%}".format("input that execute_code saves", *against))


if __name__ == "__main__":
    main()
