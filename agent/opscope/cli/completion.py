"""`opscope completion`: the script with which a shell completes opscope's commands and options."""

from __future__ import annotations

import os
import sys

import click
from click.shell_completion import get_completion_class

from opscope.errors import OpscopeError

_VARIABLE = "_OPSCOPE_COMPLETE"
"""click's name for the program `opscope`; the script sets it when the user presses Tab."""
_SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print a script for completion in a shell.")
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
def command(shell: str | None) -> None:
    """Print the script that completes commands and options in SHELL, by default that of SHELL in
    the environment.

    \b
        eval "$(opscope completion bash)"                               # ~/.bashrc
        eval "$(opscope completion zsh)"                                # ~/.zshrc
        opscope completion fish > ~/.config/fish/completions/opscope.fish
    """
    from opscope.cli._group import main

    chosen = shell or os.path.basename(os.environ.get("SHELL", ""))
    if chosen not in _SHELLS:
        raise OpscopeError(f"name one of {', '.join(_SHELLS)}; SHELL does not")
    found = get_completion_class(chosen)
    if found is None:
        raise OpscopeError(f"click has no completion for {chosen}")
    if chosen == "bash":
        # click's own check runs bash, which may be missing where the script is made.
        found._check_version = staticmethod(lambda: None)  # type: ignore[attr-defined]
    sys.stdout.write(found(main, {}, "opscope", _VARIABLE).source() + "\n")
