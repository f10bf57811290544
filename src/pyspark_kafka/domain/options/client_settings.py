"""The settings of a query's or a sink's client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kafka_settings import PREFIX, kafka_settings
from ..kafka_settings.oauth import OAUTHBEARER
from ..kafka_settings.options import spelling_problems
from ..kafka_settings.table import CALLBACK_HANDLERS
from .table import TOKEN_PROVIDER

if TYPE_CHECKING:
    from .reading import Reading


def client_settings(reading: Reading) -> dict[str, str]:
    """Return the ``kafka.*`` options without their prefix, and with what gets tokens."""
    reading.problems += spelling_problems(reading.given)
    settings = kafka_settings(reading.given)
    provider = reading.read(TOKEN_PROVIDER)
    if provider is None:
        return settings
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms", "")
    if mechanism.upper() != OAUTHBEARER:
        reading.problems.append(
            f"Option '{TOKEN_PROVIDER.name}' requires '{PREFIX}sasl.mechanism' {OAUTHBEARER}"
        )
    login, _ = CALLBACK_HANDLERS
    return settings | {login: provider}
