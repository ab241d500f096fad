"""The console script, also as `python -m onlinecal`."""

import os
import signal
from typing import Any


def _stop(*_: Any) -> None:
    """Ends the process at once: an exception may be lost in what is being imported."""
    os.write(2, b"stopped\n")
    os._exit(130)


def main() -> None:
    """Run the command line; Ctrl-C is answered in one line also before there is a command."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a job in the background ignores it
    if ours:
        signal.signal(signal.SIGINT, _stop)
    from onlinecal.cli import main as run

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    except KeyboardInterrupt:
        _stop()


if __name__ == "__main__":
    main()
