"""What a report shows of an exception group: its leaves, bounded."""

import linecache

from limbeck.runtime import report


def _raised(source: str) -> BaseException:
    linecache.cache[report.SCRIPT] = (
        len(source), None, [f"{line}\n" for line in source.split("\n")], report.SCRIPT,
    )  # fmt: skip
    try:
        exec(compile(source, report.SCRIPT, "exec"), {})
    except BaseException as error:
        return error
    raise AssertionError("the script raised nothing")


GROUP = """\
def fail(number):
    raise ValueError(f"bad {number}")
errors = []
for number in range(COUNT):
    try:
        fail(number)
    except ValueError as error:
        errors.append(error)
raise ExceptionGroup("outer", [ExceptionGroup("inner", errors), KeyError("k")])
"""


def test_a_group_shows_its_leaves_with_their_frames() -> None:
    text = report.of_exception(_raised(GROUP.replace("COUNT", "2")))["traceback"]
    assert "ExceptionGroup: outer" in text
    assert "3 exceptions in the group:" in text
    assert "1. ValueError: bad 0\n    line 6, in <module>\n      fail(number)" in text
    assert '    line 2, in fail\n      raise ValueError(f"bad {number}")' in text
    assert "2. ValueError: bad 1" in text
    assert "3. KeyError: 'k'" in text
    assert "more" not in text


def test_a_large_group_is_counted_and_cut() -> None:
    text = report.of_exception(_raised(GROUP.replace("COUNT", "10_000")))["traceback"]
    assert "10001 exceptions in the group:" in text
    assert f"{report.MAX_LEAVES}. ValueError: bad 4" in text
    assert "bad 5" not in text
    assert f"... {10_001 - report.MAX_LEAVES} more" in text
    long = _raised('raise ExceptionGroup("g", [ValueError("x" * 10**6)])')
    assert len(report.of_exception(long)["traceback"]) < 1_000


def test_a_group_as_deep_as_a_script_can_make_it_is_told() -> None:
    deep = _raised(
        "error = ValueError('deep')\nfor _ in range(5_000): error = ExceptionGroup('g', [error])\n"
        "raise error"
    )
    assert "1. ValueError: deep" in report.of_exception(deep)["traceback"]


def test_one_exception_shows_no_leaves() -> None:
    assert "group" not in report.of_exception(_raised("raise ValueError('x')"))["traceback"]
