"""The fake backend: loud, and chosen by nobody's configuration. What it owes: tests/kit/contract.py"""

import pytest

from limbeck import ConfigurationError, Executor
from limbeck.sandbox.fake import FakeBackend, NoIsolationWarning


def test_it_is_loud() -> None:
    with pytest.warns(NoIsolationWarning, match="without any isolation"):
        FakeBackend()


def test_it_has_no_name() -> None:
    with pytest.raises(ConfigurationError, match="no backend 'fake'"):
        Executor(backend="fake")
