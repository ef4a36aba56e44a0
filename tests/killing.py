"""Runs that are killed: nothing is saved any more from the update on at which it happens."""

from kinfold.engine.watch import NoWatch


class Killed(Exception):
    """Stands for SIGKILL."""


class KillAt(NoWatch):
    """Kills the run right after an update.

    Args:
        step: number of the update, from 1.
    """

    def __init__(self, step):
        self.step = step

    def tick(self, tick):
        if tick.progress.step == self.step:
            raise Killed
