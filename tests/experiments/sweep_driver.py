"""The command `btcnb` with the measure of `sweep_fakes`: for tests that end it from outside."""

from __future__ import annotations

import sys

from sweep_fakes import fake

from btcnb.build.cli import main
from btcnb.experiments import measures

if __name__ == "__main__":
    measures.measure = fake
    sys.exit(main(sys.argv[1:]))
