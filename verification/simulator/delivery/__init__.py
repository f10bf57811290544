"""librdkafka and a topic below the at-least-once sinks of the client ``confluent``."""

from ..engine.simulator import Simulator
from .faults import DeliverySettings
from .planted import FOUND_BY, PLANTED
from .simulation import simulate
from .story import story_of

SIMULATOR = Simulator("delivery", DeliverySettings.of, simulate, story_of, PLANTED, FOUND_BY)
