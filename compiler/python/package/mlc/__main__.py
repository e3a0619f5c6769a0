"""The command line: ``python -m mlc`` is ``mlc``."""

import signal
import sys

from . import _mlc


def main() -> int:
    """Runs the command that ``sys.argv`` asks for; gives the exit status."""
    # Python would only look at an interrupt after the command.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _mlc.run_process(["mlc", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
