"""Ctrl-C and SIGTERM: finish the update, save, leave with one clear line."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Whether a stop was asked for.

    Inside `listening`, the first Ctrl-C (or SIGTERM) is noted, so that the update under way ends and is saved; where nothing
    new could be lost (inside `at_once`), or the second time, it interrupts at once.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._at_once = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.is_set or self._at_once:
            self.is_set = True
            raise KeyboardInterrupt
        self.is_set = True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen for the signals, in the main thread; elsewhere Python cannot."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._note) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let a stop interrupt immediately: everything up to here is saved."""
        if self.is_set:
            raise KeyboardInterrupt
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False
