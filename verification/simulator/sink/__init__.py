"""Spark, people, and a cluster around the exactly-once sink."""

from ..engine.simulator import Simulator
from .faults import SinkSettings
from .planted import FOUND_BY, PLANTED, STRICT
from .simulation import simulate
from .story import story_of

SIMULATOR = Simulator("sink", SinkSettings.of, simulate, story_of, PLANTED, FOUND_BY, STRICT)
