"""The app: its commands, and the message on stderr and the exit code for an error that ends a command."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
from typing import Annotated, Any, Final

import typer

from kquota import __version__, durable
from kquota.cli import app_of, suggestion
from kquota.cli.contract import (
    DONE,
    FAILED,
    INTERRUPTED,
    NOT_WRITTEN,
    complain,
    drop_stdout,
    exit_code,
    is_output_lost,
    say,
    to_stderr,
    worded,
)
from kquota.cli.help import SUMMARIES, Group
from kquota.cli.unattended import TimedOut, report
from kquota.errors import KquotaError, NextStep

WIDEST: Final = 80
# Without a terminal, the width is fixed, because a script must always read the same help.
WIDTH: Final = min(WIDEST, shutil.get_terminal_size().columns) if sys.stdout and sys.stdout.isatty() else WIDEST

EPILOG: Final = """Exit codes: 0 done, 1 failed or refused, 2 wrong usage or input, 8 not finished (a move is still
running, a change is pending, or a throttle is still set) or a check has a finding, 75 try again later, 130
interrupted.

`kquota COMMAND --help` describes a command. Environment variables can replace the options that name a cluster.
config.toml in $XDG_CONFIG_HOME/kquota (default: ~/.config/kquota) defines the clusters for --cluster.

Examples:
  kquota configs --bootstrap-server localhost:9092 --alter --add-config producer_byte_rate=10MB/s --user alice
  kquota move estimate --bootstrap-server localhost:9092 --reassignment-json-file plan.json --throttle 50MB/s"""


class _Root(Group):
    """The root group. It lists every visible command, but only the command that runs is registered."""

    def summaries(self, _: Any) -> list[tuple[str, str]]:
        return list(SUMMARIES.items())


app = typer.Typer(
    name="kquota",
    cls=_Root,
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "terminal_width": WIDTH, "max_content_width": WIDTH},
)


COMMANDS: Final = (*SUMMARIES, "complete")
"""Every command and group. If the given command is one of them, only this command is imported, because the import of
all commands is noticeably slow.
"""


def register(name: str) -> None:
    """Import the command or group of this name, and add it to `app`."""
    app.add_typer(app_of(name))


def _version(value: bool) -> None:
    if value:
        print(f"kquota {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Manage Kafka quotas, move partitions under a throttle, and restore every throttle afterwards."""


def _open_what_is_closed() -> None:
    """Open stdin, stdout and stderr if they are closed (`>&-`). Otherwise a socket could get their file descriptors."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))


def _hear(signals: list[int]) -> None:
    """Let SIGTERM, SIGHUP and Ctrl-C raise KeyboardInterrupt, so that a command can report its state. The number of a
    received signal is added to `signals`. Ignored signals stay ignored.
    """

    def stop(number: int, _frame: object) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


def _interrupted(signals: list[int]) -> int:
    number = signals[0] if signals else signal.SIGINT
    say("interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}", needed=True)
    return INTERRUPTED if number == signal.SIGINT else 128 + number


def main() -> None:
    """Run one command and exit with its code. A known error prints a traceback only if `KQUOTA_DEBUG` is set."""
    _open_what_is_closed()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Files and pipes get UTF-8 in every locale, because kquota and other tools read documents as UTF-8. Characters
        # that a terminal cannot encode are escaped, as Python does on stderr, because a topic name must not make the
        # command fail.
        chosen = sys.stdout.isatty() or "PYTHONIOENCODING" in os.environ
        sys.stdout.reconfigure(encoding=None if chosen else "utf-8", errors="backslashreplace")
    asked = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    # For a misspelled command, register all commands, because Click suggests similar names.
    if asked is not None:
        for name in [asked] if asked in COMMANDS else COMMANDS:
            register(name)
    sys.exit(_code())


def _code() -> int:
    signals: list[int] = []
    with suggestion.of_one_command():
        try:
            _hear(signals)
            code: int = app(prog_name="kquota", standalone_mode=False) or DONE
            if code == INTERRUPTED:  # typer turns Ctrl-C into an exit code
                code = _interrupted(signals)
            _flush()
            return FAILED if is_output_lost() else code
        except KeyboardInterrupt:
            return _interrupted(signals)
        except TimedOut as over:
            return report(over)
        except SystemExit as ended:
            # typer exits with 1 if the reader of the help closed the pipe (`| head`). Each command catches this error
            # itself (see `commands.add`).
            if not isinstance(ended.__context__, BrokenPipeError):
                raise
            drop_stdout()
            return DONE
        except Exception as error:
            if (explained := _explained(error)) is not None:
                return explained
            if not signals:
                raise
            # Python turns the exception of a signal during an import into another one: ImportError from a C extension,
            # or RuntimeError from `__set_name__`.
            return _interrupted(signals)


def _flush() -> None:
    """Write the rest of stdout. A closed pipe, for example of `--version | head`, does not change the exit code."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()


def _explained(error: Exception) -> int | None:
    """Report an expected error and return the exit code, or return None if Python must print the traceback."""
    match error:
        case typer.TyperException():
            message = error.format_message()
            if message.startswith("Usage:"):
                to_stderr(message)
            else:
                end = "" if message.endswith("?") else "."
                complain(f"{message.rstrip('.')}{end} Try the same command with --help.")
            return error.exit_code
        case _ if os.environ.get("KQUOTA_DEBUG"):  # --debug also sets this variable
            return None
        case OSError(errno=number, strerror=reason) if number in NOT_WRITTEN:
            complain(f"stdout or a file cannot be written: {reason}. {durable.storage_step(error)}")
            drop_stdout()
            return FAILED
        case MemoryError():
            record = "not enough memory. If this command started or continued a run, the run is recorded. See it with "
            complain(worded(KquotaError(record, NextStep.SHOW_MOVES)))
            return FAILED
        case KquotaError():
            complain(worded(error))
            return exit_code(error)
    return None
