"""What the fork server imports first: importing this module imports what the chapters import."""

from btcnb.build.kernels import preload

preload()
