from __future__ import annotations

import pytest

from pyspark_kafka.adapters.kernels.kernel import Kernel
from tests.kernel_kinds import require_kinds


@pytest.fixture
def open_world(request, fresh_name):
    """Return a factory of an adapter's world, which starts the run's Kafka if it needs one."""
    return lambda held: held.world(fresh_name, lambda: request.getfixturevalue("kafka"))


@pytest.fixture(autouse=True)
def kernels_get_what_they_are_compiled_for(monkeypatch):
    """Check the types of arguments, which kernels do not do."""
    call = Kernel.__call__

    def checked(kernel: Kernel, *arguments: object) -> object:
        require_kinds(arguments, kernel.kinds)
        return call(kernel, *arguments)

    monkeypatch.setattr(Kernel, "__call__", checked)
