"""The one contract, on every backend: fake, bubblewrap with a cgroup and without, docker."""

import warnings

import pytest
from kit.contract import CASES, WAYS, check_backend, checks
from kit.sandboxed import BACKENDS, ON_ALL

from limbeck.sandbox.fake import FakeBackend, NoIsolationWarning


def _fake() -> FakeBackend:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoIsolationWarning)
        return FakeBackend()


@pytest.mark.parametrize("name", checks())
@ON_ALL
def test_a_backend_with_walls(where: str, name: str) -> None:
    checks()[name](BACKENDS[where])


def test_the_fake_backend_owes_all_that_needs_no_wall() -> None:
    check_backend(_fake, walls=False)


def test_every_status_is_among_the_cases() -> None:
    from limbeck.sandbox.result import Status

    seen = {case.status for case in CASES.values()} | {"cancelled", "unavailable"}
    assert seen == set(Status)
    assert {"closing", "unavailable"} <= WAYS.keys()
