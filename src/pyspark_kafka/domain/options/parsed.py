"""The check of options that were parsed in another process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import OptionsError
from ..values.registry import PREFIX as REGISTRY_PREFIX
from .sink_options import SinkOptions
from .value_table import REGISTRY_URL

if TYPE_CHECKING:
    from ..values.value_options import RegistryOptions
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
    if options.registry is not None:
        policy.check_options([REGISTRY_URL.name, *_names(options.registry)])
    problems = policy.problems(settings, options.client)
    if problems:
        raise OptionsError([f"{problem}, {_EXECUTORS}" for problem in problems])


def _names(registry: RegistryOptions) -> list[str]:
    return [f"{REGISTRY_PREFIX}{name}" for name, _ in registry.settings]
