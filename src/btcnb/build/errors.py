"""What can go wrong in a build, told in one sentence."""

from __future__ import annotations

from btcnb.errors import BtcnbError


class UsageError(BtcnbError):
    """The request makes no sense (unknown chapter, unknown preset, …): nothing has been run; exit status 2."""


class BuildError(BtcnbError):
    """The build began and cannot end well; exit status 1."""
