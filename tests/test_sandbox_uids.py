"""The range of the sandboxes' uids is the operator's."""

import os

import pytest
from kit.sandboxed import ON_BOTH, execute

from limbeck import ConfigurationError, Executor
from limbeck.sandbox import uids

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives sandboxes uids")


@ROOT_ONLY
@ON_BOTH
def test_a_sandbox_s_uid_is_of_the_range(where: str) -> None:
    script = "import os\nprint(os.getuid(), os.getgid())"
    uid, gid = map(int, execute(script, backend=where, uid_base=300_000).printout.split())
    assert 300_000 <= uid == gid < 300_000 + uids.COUNT


@ROOT_ONLY
def test_ranges_that_overlap_lend_no_uid_twice() -> None:
    leases = [uids.lease_uid(base) for base in (300_000, 300_001, 300_000, 300_002, 300_001)]
    try:
        assert len({one.uid for one in leases}) == len(leases)
    finally:
        for one in leases:
            one.release()


@pytest.mark.parametrize("base", [0, 1000, 99_999, 2**31, -1, True, 1.5, "5"])
def test_a_range_that_cannot_be_is_refused(base: object) -> None:
    with pytest.raises(ConfigurationError, match="uid_base"):
        Executor(uid_base=base)
