"""The command `btcnb`: where Python enters. It imports nothing before it can answer Ctrl-C in one sentence.

Importing the package takes a moment, in which an interrupt would print a traceback: this module stands outside of it.
"""

import sys


def main() -> int:
    """Run `btcnb.build.cli.main`; 130 if interrupted before or after it could say so itself."""
    try:
        from btcnb.build.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("\nbtcnb: Interrupted before anything ran.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
