"""The entry point of `kquota` and of `python -m kquota`. It sets the signal handlers before it imports the rest."""

import gc
import os
import signal
import sys
from types import FrameType

_LINES = {signal.SIGINT: "interrupted", signal.SIGTERM: "stopped by SIGTERM", signal.SIGHUP: "stopped by SIGHUP"}


def main() -> None:
    """Run one command, and end the process with the exit code of the command.

    Until the command begins, a signal ends the process at once, because nothing has been written.
    """
    for number in _LINES:
        # A signal that is ignored, for example by nohup, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    # Collect garbage rarely, because imports leave few reference cycles. With Python 3.11's default threshold of 700,
    # garbage collection takes 4% of the time of a short command.
    gc.set_threshold(200_000)
    from kquota.cli.main import main as run  # imported here, because the signal handlers must be set first

    try:
        try:
            run()
        finally:
            # The exit code is known, so a signal while Python shuts down must not print a traceback.
            for number in _LINES:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, signal.SIG_DFL)
    except SystemExit as ended:
        if ended.code in {128 + number for number in _LINES}:
            # Python closes the generators of the interrupted work only now, and would print their errors.
            sys.unraisablehook = lambda _: None
        _end_at_once(ended.code)
        raise


def _end_at_once(code: object) -> None:
    """End the process at once if `code` is a number and no other thread runs, because a normal exit takes 30 ms
    longer.
    """
    import atexit  # imported here, because the signal handlers must be set first
    import threading  # imported here, because the signal handlers must be set first

    if isinstance(code, int) and threading.active_count() == 1:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _stop(number: int, _frame: FrameType | None) -> None:
    try:
        os.write(2, f"kquota: {_LINES[signal.Signals(number)]}\n".encode())
    finally:  # also if stderr is a closed pipe or on a full disk
        os._exit(128 + number)


if __name__ == "__main__":
    main()
