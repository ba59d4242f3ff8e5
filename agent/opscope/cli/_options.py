"""Options of the commands that need no extra: optparse with the conventions of click.

Abbreviated options are rejected, so that a new option never changes the meaning of an old command
line. A usage error is one line on standard error and exit status 2. The other commands use click.
"""

from __future__ import annotations

import inspect
import sys
from optparse import BadOptionError, HelpFormatter, OptionParser
from typing import NoReturn


class Options(OptionParser):
    """Options of the command `name`. `text` is its help text; it may be indented."""

    def __init__(self, name: str, usage: str, text: str) -> None:
        super().__init__(
            prog=f"opscope {name}",
            usage=f"%prog {usage}",
            description=inspect.cleandoc(text),
            add_help_option=False,
        )
        self.add_option("-h", "--help", action="help", help="Show this message and exit.")

    def format_description(self, formatter: HelpFormatter | None) -> str:
        """The text with its line breaks, for examples; optparse would join all paragraphs."""
        return f"{self.description}\n"

    def error(self, msg: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"Error: {msg}", file=sys.stderr)
        sys.exit(2)

    def _match_long_opt(self, opt: str) -> str:
        if opt not in self._long_opt:
            raise BadOptionError(opt)
        return opt
