"""What a person sees while a run trains: a progress line on a terminal, plain lines elsewhere; all on stderr."""

import time
from collections.abc import Mapping
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from kinfold.engine.progress import Progress as RunProgress
from kinfold.engine.watch import Tick


class ConsoleWatch:
    """Shows loss terms, images per second, the share of waiting for data and the time left.

    Use it as a context: `with ConsoleWatch() as watch: fit(…, watch=watch)`.

    Args:
        epochs: epochs of the run.
        every: seconds between two plain lines where stderr is no terminal.
    """

    def __init__(self, epochs: int, *, every: float = 30.0):
        self.epochs, self.every = epochs, every
        self.console = Console(stderr=True, highlight=False)
        self._last_line = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "ConsoleWatch":
        if self.console.is_terminal:
            columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[facts]}")
            self._bar = Progress(*columns, console=self.console, transient=True)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def resumed(self, progress: RunProgress) -> None:
        """Say where the run goes on, or that it has ended."""
        if progress.is_done:
            self.console.print(f"this run ended before, after {progress.step:,} steps: nothing left to train")
        else:
            self.console.print(f"going on at epoch {progress.epoch + 1}, step {progress.step:,}")

    def tick(self, tick: Tick) -> None:
        """Show one update."""
        name, done = f"epoch {tick.progress.epoch + 1}/{self.epochs}", tick.progress.batch
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(name, total=tick.n_batches, facts="")
            self._bar.update(self._task, description=name, completed=done, total=tick.n_batches, facts=_facts(tick))
        elif time.monotonic() - self._last_line >= self.every or done == tick.n_batches:
            self._last_line = time.monotonic()
            self.console.print(f"{name}  {done}/{tick.n_batches}  {_facts(tick)}", soft_wrap=True)

    def evaluated(self, epoch: int, metrics: Mapping[str, float], *, is_best: bool) -> None:
        """Show one evaluation."""
        shown = "  ".join(f"{name} {value:.4f}" for name, value in list(metrics.items())[:4])
        self.console.print(f"epoch {epoch + 1}/{self.epochs}  validation: {shown}{'  (best)' if is_best else ''}", soft_wrap=True)

    def warned(self, code: str, message: str) -> None:
        """Show a warning with its name, by which the documentation tells more."""
        self.console.print(f"warning ({code}): {message}", style="yellow", markup=False, soft_wrap=True)


def _facts(tick: Tick) -> str:
    terms = {name: value for name, value in tick.values.items() if not name.startswith("lr/") and name != "grad_norm"}
    if len(terms) == 2:  # one term: the total says nothing more
        terms.pop("loss")
    parts = [f"{name} {value:.4g}" for name, value in terms.items()]
    left = timedelta(seconds=round(tick.seconds_left))
    parts += [f"{tick.images_per_second:.0f} images/s", f"waiting for data {tick.wait_share:.0%}", f"{left} left"]
    return "  ".join(parts)
