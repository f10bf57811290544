"""Spark, people, and a cluster around the exactly-once sink."""

from ..engine.simulator import Simulator
from .faults import SinkSettings
from .planted import PLANTED, STRICT
from .simulation import simulate
from .story import story_of

SIMULATOR = Simulator("sink", SinkSettings.of, simulate, story_of, PLANTED, STRICT)
