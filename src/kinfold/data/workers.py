"""Starting worker processes that leave Ctrl-C to the main process."""

import pickle
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.context import BaseContext
from types import TracebackType
from typing import Any

from torch.utils.data import DataLoader

from kinfold.errors import ConfigError


def started(loader: DataLoader) -> Iterator[Any]:
    """Begin an epoch of a data loader; worker processes that it starts never see Ctrl-C."""
    if not loader.num_workers:
        return iter(loader)
    if not _forks(loader.multiprocessing_context) and hasattr(signal, "pthread_sigmask"):
        # Python starts its tracker with the first fresh process, and would let interrupts through again.
        from multiprocessing.resource_tracker import ensure_running

        ensure_running()
    with _interrupts_held():
        return iter(loader)


def quiet(_worker: int) -> None:
    """Prepare a worker process: Ctrl-C is the main process's matter, and so is its going away in the middle of a transfer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.excepthook = _unless_disconnected


def _unless_disconnected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, ConnectionError | EOFError):
        sys.__excepthook__(kind, error, trace)


def stop(loader: DataLoader) -> None:
    """End the worker processes of a data loader that keeps them."""
    iterator = getattr(loader, "_iterator", None)
    shut_down = getattr(iterator, "_shutdown_workers", None)
    if shut_down is not None:
        shut_down()


def check_sendable(what: object, *, start_method: str | None) -> None:
    """Stop if a transform cannot be sent to a fresh process.

    Raises:
        ConfigError: it cannot, and the start method needs it.
    """
    if _forks(get_context(start_method)):
        return
    try:
        pickle.dumps(what)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"the transform cannot be sent to worker processes ({error}): define it at the top level of a module instead of as a "
            "lambda or an inner function, or set workers = 0"
        ) from error


def _forks(context: BaseContext | None) -> bool:
    return (context or get_context()).get_start_method() == "fork"


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back inside the block: processes started there inherit that, and it reaches this one afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
