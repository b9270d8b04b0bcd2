"""What the fork server imports first: importing this module there imports what the chapters import."""

import os

from btcnb.build.kernels import MODULES, preload

if MODULES in os.environ:
    preload()
