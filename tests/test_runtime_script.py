"""What a model sent becomes a script: fences, newlines, bounds; and what is told of other texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.runtime import gate
from limbeck.runtime.script import NotPython, prepare

LIMIT = 1_000
CODE = "x = 1\nprint(x)"


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{CODE}\n```",
        f"```py\n{CODE}\n```\n",
        f"\n\n  ```\n{CODE}\n```  \n",
        f"~~~Python3\n{CODE}\n~~~",
        f"````python title=x\n{CODE}\n````",
        f"\ufeff```python\r\n{CODE}\r\n```".replace("1\n", "1\r\n"),
        f"Here is the script you asked for:\n\n```python\n{CODE}\n```\nIt prints x.",
    ],
)
def test_fences_are_removed(text):
    assert prepare(text, LIMIT).strip() == CODE


@pytest.mark.parametrize(
    "text",
    [
        CODE,
        'x = """\n```python\ny = 1\n```\n"""',
        "# ```python\nx = 1\n# ```",
        "x = '```'",
    ],
)
def test_a_script_with_fences_inside_stays_as_it_is(text):
    assert prepare(text, LIMIT) == text
    assert gate.vet(prepare(text, LIMIT)) == []


def test_newlines_are_even():
    assert prepare("a = 1\r\nb = 2\rc = 3\n", LIMIT) == "a = 1\nb = 2\nc = 3\n"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", "empty", "empty"),
        (" \n\t\n", "empty", "empty"),
        ("```python\n\n```", "empty", "empty"),
        ("x" * (LIMIT + 1), "too_large", "1,001 bytes"),
        ("é" * 501, "too_large", "limit is 1,000"),
        ("x = 1\ny = '\0'", "not_text", "line 2 holds a NUL"),
        ("x = 1\n\ny = '\ud800'", "not_text", "line 3"),
        ("```bash\nls\n```", "not_python", "'bash'"),
        ('```json\n{"a": 1}\n```', "not_python", "'json'"),
    ],
)
def test_what_is_no_script_is_refused(text, code, words):
    with pytest.raises(NotPython) as caught:
        prepare(text, LIMIT)
    assert caught.value.code == code
    assert words in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ls -la *.csv", "shell"),
        ("rm -rf /", "shell"),
        ("$ pip install requests", "shell"),
        ("pip install requests", "shell"),
        ("#!/bin/bash\necho done", "another interpreter"),
        ("cd /workspace && python x.py", "shell"),
        ("cat orders.csv | head", "shell"),
        ("!pip install pandas", "notebook"),
        ("%timeit f(x)", "notebook"),
        ("Please list all orders of the last month.", "prose"),
        ("I will now call the tool and print what it returns", "prose"),
        ('{"orders": [1, 2', "JSON"),
        ('[{"id": 1, "name": "x"}, {"id": }]', "JSON"),
        ("const x = 1;", "another language"),
        ("x = 1\n```\nprint(x)", "Markdown"),
    ],
)
def test_the_fault_says_what_a_text_is_instead(text, what):
    (fault,) = gate.vet(prepare(text, LIMIT))
    assert what in fault.message
    assert "not Python" in fault.message
    assert fault.hint


@pytest.mark.parametrize(
    "text",
    [
        "ls -la",
        "ls -la /tmp",
        "echo",
        "cat = 1",
        "cd",
        "git - status",
        "find (x)",
        '{"a": 1}',
        "[1, 2]",
        "env[0]",
    ],
)
def test_what_parses_is_never_refused_for_its_looks(text):
    assert gate.vet(prepare(text, LIMIT)) == []


@pytest.mark.parametrize(
    "text", ["print 'x'", "for x in y", "def f(:\n  pass", "x = = 1", "if x:\nprint(1)", "x = 'abc"]
)
def test_broken_python_is_told_as_broken_python(text):
    (fault,) = gate.vet(prepare(text, LIMIT))
    assert "not Python" not in fault.message
    assert fault.line >= 1
    assert fault.column >= 1
    assert fault.source_line == text.split("\n")[fault.line - 1]


@given(st.text(max_size=300))
def test_any_text_is_prepared_or_refused_and_vetted(text):
    try:
        script = prepare(text, LIMIT)
    except NotPython:
        return
    for fault in gate.vet(script):
        assert str(fault)


@given(st.text(alphabet="`~ \npythonx=1#", max_size=60))
def test_preparing_twice_changes_nothing_without_fences(text):
    try:
        once = prepare(text, LIMIT)
    except NotPython:
        return
    if "```" not in once and "~~~" not in once:
        assert prepare(once, LIMIT) == once
