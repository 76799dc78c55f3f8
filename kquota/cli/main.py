"""The app: which commands there are, and the one place where an error becomes a line on stderr and an exit code."""

from __future__ import annotations

import errno
import gc
import io
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Final

import typer

from kquota import __version__
from kquota.cli.contract import DONE, FAILED, INTERRUPTED, complain, exit_code, say
from kquota.cli.help import Command, Group, under
from kquota.errors import KquotaError

WIDEST: Final = 80
# As wide as a narrower terminal, where there is one: a script must read the same help everywhere.
WIDTH: Final = min(WIDEST, shutil.get_terminal_size().columns) if sys.stdout and sys.stdout.isatty() else WIDEST

_NOT_WRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

EPILOG: Final = """Exit codes: 0 done, 1 failed or refused, 2 wrong usage or input, 8 not there yet (a move still
runs, something would change or is left over), 75 try again later, 130 interrupted.

`kquota COMMAND --help` says more. Variables stand for the options that name a cluster; config.toml (~/.config/kquota,
$XDG_CONFIG_HOME) has those of --cluster.

Examples:
  kquota configs --bootstrap-server localhost:9092 --alter --add-config producer_byte_rate=10MB/s --user alice
  kquota move estimate --bootstrap-server localhost:9092 --reassignment-json-file plan.json --throttle 50MB/s"""

app = typer.Typer(
    name="kquota",
    help="Every Kafka quota, and throttled partition moves that always give their throttles back.",
    cls=Group,
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "terminal_width": WIDTH, "max_content_width": WIDTH},
)


def _complete() -> None:
    from kquota.cli import complete

    app.command("complete", hidden=True)(complete.complete)


def _configs() -> None:
    from kquota.cli.configs import command as configs
    from kquota.cli.configs.entities import EntityCommand

    app.command(cls=under(configs.HEADINGS, EntityCommand), epilog=configs.EPILOG)(configs.configs)


def _log_dirs() -> None:
    from kquota.cli.log_dirs import command as log_dirs

    app.command("log-dirs", cls=under(log_dirs.HEADINGS, Command), epilog=log_dirs.EPILOG)(log_dirs.log_dirs)


def _move() -> None:
    from kquota.cli.move import group as move

    app.add_typer(move.app, name="move")


def _quota() -> None:
    from kquota.cli.quota import group as quota

    app.add_typer(quota.app, name="quota")


def _reassign_partitions() -> None:
    from kquota.cli.reassign_partitions import command as reassign_partitions
    from kquota.cli.reassign_partitions.options import HEADINGS
    from kquota.cli.strict import StrictCommand

    command = app.command("reassign-partitions", cls=under(HEADINGS, StrictCommand), epilog=reassign_partitions.EPILOG)
    command(reassign_partitions.reassign_partitions)


def _sandbox() -> None:
    from kquota.cli import sandbox

    app.add_typer(sandbox.app, name="sandbox")


def _topics() -> None:
    from kquota.cli.strict import StrictCommand
    from kquota.cli.topics import command as topics
    from kquota.cli.topics.options import HEADINGS

    app.command("topics", cls=under(HEADINGS, StrictCommand), epilog=topics.EPILOG)(topics.topics)


def _throttle() -> None:
    from kquota.cli.throttle import group as throttle

    app.add_typer(throttle.app, name="throttle")


COMMANDS: Final[Mapping[str, Callable[[], None]]] = {
    "configs": _configs,
    "reassign-partitions": _reassign_partitions,
    "topics": _topics,
    "log-dirs": _log_dirs,
    "move": _move,
    "throttle": _throttle,
    "quota": _quota,
    "sandbox": _sandbox,
    "complete": _complete,
}
"""In the order of the help. Only the command that is asked for is imported: an operator feels the others' share."""


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
    """Every Kafka quota, and throttled partition moves that always give their throttles back."""


def _open_what_is_closed() -> None:
    """A process may start without stdin, stdout or stderr (`>&-`): its first socket would take their number."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))


def _hear(signals: list[int]) -> None:
    """A SIGTERM or SIGHUP stops a command as Ctrl-C does, so that it can say how to go on. What is ignored stays so."""

    def stop(number: int, _frame: object) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, stop)


def _interrupted(signals: list[int]) -> int:
    say("interrupted" if not signals else f"stopped by {signal.Signals(signals[0]).name}")
    return 128 + signals[0] if signals else INTERRUPTED


def main() -> None:
    """Run one command and exit with its code; no traceback unless KQUOTA_DEBUG is set."""
    # Most of a short command is imports, which make much and leave no rubbish: collect, but seldom.
    gc.set_threshold(100_000)
    _open_what_is_closed()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale that cannot write a name shows it escaped, as stderr does, and does not end the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    signals: list[int] = []
    _hear(signals)
    asked = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    for name, register in COMMANDS.items():
        if name == asked or asked not in COMMANDS:
            register()
    sys.exit(_code(signals))


def _code(signals: list[int]) -> int:
    """The exit code of the command, after it has run; of an error its line on stderr, too."""
    try:
        code: int = app(prog_name="kquota", standalone_mode=False) or DONE
        if code == INTERRUPTED:  # typer makes an exit code of a Ctrl-C
            code = _interrupted(signals)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _interrupted(signals)
    except BrokenPipeError:  # the reader went away (`| head`)
        _drop_stdout()
        return FAILED
    except OSError as error:
        if _debugging() or error.errno not in _NOT_WRITTEN:
            raise
        complain(f"cannot write: {error.strerror}")
        _drop_stdout()
        return FAILED
    except typer.TyperException as error:
        message = error.format_message()
        if message.startswith("Usage:"):
            print(message, file=sys.stderr)
        else:
            complain(f"{message.rstrip('.')}. Try the same command with --help.")
        return error.exit_code
    except KquotaError as error:
        if _debugging():
            raise
        complain(str(error))
        return exit_code(error)


def _debugging() -> bool:
    """Asked after the command, for its --debug sets the variable."""
    return bool(os.environ.get("KQUOTA_DEBUG"))


def _drop_stdout() -> None:
    """Whatever of stdout is not written by now never will be, nor can Python's last flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
