"""A cluster and its network around what reads with the client kafka-python."""

from ..engine.simulator import Simulator
from .faults import ReadingSettings
from .planted import FOUND_BY, PLANTED
from .simulation import simulate
from .story import story_of

SIMULATOR = Simulator("reading", ReadingSettings.of, simulate, story_of, PLANTED, FOUND_BY)
