"""An executor is lost while a micro-batch is written; ``--write-stage`` runs more rounds."""

import sys

import pytest

from verification.soak.stage_stories import Story
from verification.soak.write_stage_soak import WriteStageSoak

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about processes"),
    pytest.mark.timeout(480),
]


def test_an_executor_is_lost_while_others_write(kafka):
    with WriteStageSoak(kafka, seed=0) as soak:
        result = soak.run_round(0, Story("twin of a finished task"))
    assert result.facts["twins"]
