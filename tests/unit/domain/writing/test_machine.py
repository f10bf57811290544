"""No interleaving loses a record, writes one twice or out of order, or keeps memory."""

import os
from typing import Final

from hypothesis import HealthCheck, settings

from .machine import ProducerMachine

STEPS: Final = 50
EXAMPLES: Final = int(os.environ.get("PRODUCER_EXAMPLES", "250"))

TestProducer = ProducerMachine.TestCase
TestProducer.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
