"""Real shells: the completions that they offer at the end of a line, and what they show for keys on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

COMPLETIONS: Final = Path(__file__).parents[2] / "completions"

_LOOK_SECONDS: Final = 0.05
READY: Final = "READY "
"""The prompt of a shell that waits for keys."""

# A key is pressed after each line. The word that readline inserts is restored before the answers.
_BASH: Final = r"""
PS1='READY '
. "$COMPLETIONS/kquota.bash"
_traced() {
    local word stays=${COMP_LINE##* }
    _kquota "$@"
    printf '# %s\n' "$COMP_LINE" >> "$ANSWERS"
    for word in "${COMPREPLY[@]}"; do printf '%s\n' "${stays%"$2"}$word" >> "$ANSWERS"; done
}
complete -o default -F _traced kquota
bind 'set completion-query-items 0' 'set page-completions off' 'set enable-bracketed-paste off'
"""

_FISH: Final = """
source $COMPLETIONS/kquota.fish
while read --line line
    printf '# %s\\n' $line
    complete -C $line | string replace --regex '\\t.*' ''
end < $LINES_ASKED > $ANSWERS
true
"""

# Every match passes through compadd. A completion widget of zsh runs only in its line editor, on a terminal.
_ZSH: Final = """
fpath=($COMPLETIONS $fpath)
autoload -Uz compinit
compinit -u -D
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a found
    builtin compadd -A found "$@"
    for word in $found; do print -r -- "$IPREFIX$word" >> $ANSWERS; done
    builtin compadd "$@"
}
zle -C offer list-choices _main_complete
zle-line-init() {
    local line word
    while IFS= read -r line; do
        print -r -- "# $line" >> $ANSWERS
        BUFFER=$line CURSOR=$#line
        zle offer
    done < $LINES_ASKED
    exit
}
zle -N zle-line-init
"""


def offers(shell: str, lines: Sequence[str], environment: Mapping[str, str], folder: Path) -> dict[str, list[str]]:
    """Return the words that the shell offers at the end of each line. File names are as long as the shell completes
    them.
    """
    must_be_there(shell)
    home = folder.parent / shell
    home.mkdir()
    answers, asked = home / "answers", home / "lines"
    asked.write_text("".join(f"{line}\n" for line in lines))
    ours = {**environment, "ANSWERS": str(answers), "LINES_ASKED": str(asked), "ZDOTDIR": str(home)}
    match shell:
        case "bash":
            (home / "rc").write_text(_BASH)
            keys = "".join(f"{line}\t\x15" for line in lines) + "exit\r"
            type_into(["bash", "--noprofile", "--rcfile", str(home / "rc"), "-i"], keys, ours, folder)
        case "zsh":
            (home / ".zshrc").write_text(_ZSH)
            type_into(["zsh", "-d", "-i"], "", ours, folder)
        case "fish":
            subprocess.run(["fish", "--no-config", "-c", _FISH], env=_known(ours), cwd=folder, timeout=240, check=True)
    found: dict[str, list[str]] = {}
    for line in answers.read_text().splitlines():
        if line.startswith("# "):
            words = found.setdefault(line[2:], [])
        else:
            words.append(line.rstrip("/"))
    # If no word begins like the end of the line, fish offers similar words.
    return {line: [word for word in words if word.startswith(line.split(" ")[-1])] for line, words in found.items()}


def must_be_there(shell: str) -> None:
    """Skip the test, and name the shell, if the machine does not have it."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


def type_into(
    command: Sequence[str],
    keys: str,
    environment: Mapping[str, str],
    folder: Path,
    done: Callable[[], bool] = lambda: False,
) -> str:
    """Type keys into a shell on a terminal, after its prompt. Return its screen when it exits or is `done`."""
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=_known(environment),
        cwd=folder,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    screen, left = b"", keys.encode()
    try:
        while not done():
            typing = [ours] if left and READY.encode() in screen else []
            readable, writable, _ = select.select([ours], typing, [], _LOOK_SECONDS)
            if readable:
                screen += os.read(ours, 65536)
            if writable:
                left = left[os.write(ours, left[:256]) :]
    except OSError:  # the shell has exited and closed its terminal
        pass
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
    return screen.decode(errors="replace")


def _known(environment: Mapping[str, str]) -> dict[str, str]:
    return {**environment, "COMPLETIONS": str(COMPLETIONS), "TERM": "xterm"}
