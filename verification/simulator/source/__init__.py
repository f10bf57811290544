"""Spark, people, and a cluster around the source: its driver, and its tasks."""

from ..engine.simulator import Simulator
from .faults import SourceSettings
from .planted import FOUND_BY, PLANTED
from .simulation import simulate
from .story import story_of

SIMULATOR = Simulator("source", SourceSettings.of, simulate, story_of, PLANTED, FOUND_BY)
