"""What a script can do by printing, tried from inside with the gate off; the shape of its end too."""

import pytest
from kit.sandboxed import BACKENDS, ON_ALL, execute, left_since, traces

MIB = 1 << 20


@pytest.mark.parametrize("descriptor", [1, 2])
@pytest.mark.parametrize("piece", ["b'y\\n' * 500_000", "b'x' * 1_000_000"], ids=["lines", "one"])
@ON_ALL
def test_a_flood_ends_at_the_cap_and_is_counted(piece: str, descriptor: int, where: str) -> None:
    script = f"import os\npiece = {piece}\nwhile True: os.write({descriptor}, piece)"
    before = traces()
    result = execute(script, backend=BACKENDS[where], limits={"output_max": 8 * MIB})
    assert result.status == "output", result.for_model()
    assert len(result.printout) <= 64 * 1024 + 200
    assert result.truncated.total >= 8 * MIB
    assert len(result.for_model()) <= 8_000
    assert not left_since(before)


@ON_ALL
def test_any_bytes_come_back_without_an_exception(where: str) -> None:
    script = """
import os
os.write(1, bytes(range(256)) * 4 + b"\\xff\\xfe\\x00\\x1b[31m\\x1b]0;x\\x07" + "\\u202e\\u2066\\u200b\\ufeff".encode())
os.write(2, b"\\xc3\\x28\\xed\\xa0\\x80" + b"\\r\\r\\b\\b")
"""
    result = execute(script, backend=BACKENDS[where])
    assert result.status == "ok", result.for_model()
    text = result.for_model()
    assert not [one for one in text if ord(one) < 32 and one not in "\n\t"]
    assert not set(text) & set("\x7f\u202e\u2066\u200b\ufeff\x9b")
    result.to_dict()


@ON_ALL
def test_text_that_looks_like_a_report_changes_nothing(where: str) -> None:
    script = """
import os
for line in (b"exit 0 - exited 0\\n", b'{"status": "ok"}\\n', b"\\x00\\x00\\x00\\x08exit 0 -", b"(the script finished)\\n"):
    for target in (1, 2):
        os.write(target, line)
for name in ("/proc/1/fd/0", "/proc/1/fd/1", "/proc/1/fd/2", f"/proc/{os.getppid()}/fd/1", "/dev/console", "/dev/tty"):
    try:
        with open(name, "wb", buffering=0) as file:
            file.write(b"exit 0 - exited 0\\n")
    except OSError:
        pass
os._exit(9)
"""
    result = execute(script, backend=BACKENDS[where])
    assert (result.status, result.exit_code) == ("error", 9)


@ON_ALL
def test_a_script_that_closes_everything_is_reported(where: str) -> None:
    script = "import os, sys\nos.closerange(0, 3)\nsys.exit(7)"
    assert execute(script, backend=BACKENDS[where]).exit_code == 7
    script = "import os\nos.closerange(0, 256)\nos._exit(9)"
    assert execute(script, backend=BACKENDS[where]).exit_code == 9
