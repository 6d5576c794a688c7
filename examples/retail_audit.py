"""The main job on real input: a catalogue audit by one script, next to individual tool calls.

The tools run over the retail database of tau2-bench; the script lists the product types, reads
every product and prints those with fewer than five variants in stock. `make demo` runs this file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from retail import retail

from limbeck import CodeTool, Executor
from limbeck.benchmark.tokens import Cost, call_text, cost, tokenizer

SCRIPT = (Path(__file__).parent / "audit_script.py").read_text()


def main() -> None:
    """Run the audit and show what it cost, side by side."""
    turns: list[tuple[str, str]] = []
    record_calls(turns)
    with Executor([retail], scopes={"*"}) as executor:
        result = executor.execute_code(SCRIPT)
        if result.status != "ok":
            sys.exit(result.for_model())
        definition = CodeTool(executor).tool_spec("openai")
    print(result.printout)
    tokens = tokenizer()
    individual = cost(tokens, json.dumps(definitions()), turns)
    code = cost(
        tokens, json.dumps(definition), [(json.dumps({"code": SCRIPT}), result.for_model())]
    )
    show(individual, code, tokens.name)
    print(
        f"\n{result.calls.started} tool calls in {result.usage.wall:.2f} s inside "
        f"{result.sandbox.backend} ({result.sandbox.memory_limit}), "
        f"{result.usage.cpu:.2f} s of CPU with the sandbox's start"
    )


def definitions() -> list[dict[str, Any]]:
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
        for tool in retail
    ]


def record_calls(turns: list[tuple[str, str]]) -> None:
    """The audit by individual calls: what a model would write and what would come back."""
    tools = {tool.spec.name: tool for tool in retail}

    def call(name: str, arguments: dict[str, Any]) -> Any:
        tool = tools[name]
        text = tool.write_result(tool.handler(**arguments)).decode()
        turns.append((call_text(name, arguments), text))
        return json.loads(text)

    for product_id in call("list_all_product_types", {}).values():
        call("get_product_details", {"product_id": product_id})


def show(individual: Cost, code: Cost, counted_with: str) -> None:
    """A table of the two ways."""
    rows = [
        ("tool definitions", individual.definitions, code.definitions),
        ("calls / script", individual.sent, code.sent),
        ("results / printout", individual.returned, code.returned),
        ("in the context at the end", individual.context, code.context),
        ("input summed over requests", individual.summed_input, code.summed_input),
        ("requests to the model", individual.requests, code.requests),
    ]
    print(f"{f'tokens ({counted_with})':28}{'individual calls':>18}{'execute_code':>14}{'':>10}")
    for name, one, other in rows:
        print(f"{name:28}{one:18,}{other:14,}{(other - one) / one:>+10.1%}")


if __name__ == "__main__":
    main()
