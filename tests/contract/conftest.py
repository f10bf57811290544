"""The worlds of the registry's adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.kernels.kernel import Kernel
from tests.kernel_kinds import require_kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.testing import World

    from .registry import Held


@pytest.fixture
def open_world(
    request: pytest.FixtureRequest, fresh_name: Callable[[], str]
) -> Callable[[Held], World]:
    """Return a factory of an adapter's world, which starts the run's Kafka if it needs one."""
    return lambda held: held.world(fresh_name, lambda: request.getfixturevalue("kafka"))


@pytest.fixture(autouse=True)
def kernels_get_what_they_are_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the types of arguments, which kernels do not do."""
    call = Kernel.__call__

    def checked(kernel: Kernel, *arguments: object) -> object:
        require_kinds(arguments, kernel.kinds)
        return call(kernel, *arguments)

    monkeypatch.setattr(Kernel, "__call__", checked)
