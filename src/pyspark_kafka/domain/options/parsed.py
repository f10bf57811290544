"""The check of options that were parsed in another process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import OptionsError
from .sink_options import SinkOptions

if TYPE_CHECKING:
    from .policy import OptionPolicy
    from .source_options import SourceOptions

_EXECUTORS: Final = "for executors, too ('spark.executorEnv.*')"


def check_parsed(options: SourceOptions | SinkOptions, policy: OptionPolicy) -> None:
    """Check options by the policy of this process, wherever they were parsed.

    :raises DisallowedOptionError: if the policy forbids one.
    :raises OptionsError: if one needs the operator's permission.
    """
    settings = dict(options.kafka)
    if isinstance(options, SinkOptions) and options.producer.partitioner:
        settings["partitioner.class"] = options.producer.partitioner
    policy.check(settings)
    problems = policy.problems(settings, options.client)
    if problems:
        raise OptionsError([f"{problem}, {_EXECUTORS}" for problem in problems])
