"""The group of commands: misspelt ones get a hint, known errors one message and an exit code."""

import os
import sys
from typing import Any, NoReturn

from typer.core import TyperGroup

from kinfold.errors import Interrupted, KinfoldError, TrainingError, did_you_mean

CONTEXT = {"help_option_names": ["-h", "--help"]}


class Commands(TyperGroup):
    """A group that names the nearest command to a misspelt one, and turns known errors into one message and an exit code."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, or say which one was probably meant."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"no command `{args[0]}`: {did_you_mean(args[0], self.commands)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _fail("stopped", 130)
        except BrokenPipeError:
            _silence()
        except KinfoldError as error:
            _fail(f"error: {error}", _exit_code(error))


def _exit_code(error: KinfoldError) -> int:
    if isinstance(error, Interrupted):
        return 130
    return 1 if isinstance(error, TrainingError) else 2


def _fail(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(code)


def _silence() -> NoReturn:
    """Leave quietly when the reader of our output has gone (`kinfold ls trunks | head`)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0)
