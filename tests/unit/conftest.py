"""Settings of the laws that hypothesis tries."""

from __future__ import annotations

from hypothesis import settings

# A law holds on a machine that is busy, too.
settings.register_profile("unhurried", parent=settings.default, deadline=None)
settings.load_profile("unhurried")
