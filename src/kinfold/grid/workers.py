"""Cells in several processes, one thread each; every process keeps what it has read from one cell to the next."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from kinfold.allocator import keep_freed_memory
from kinfold.errors import ConfigError, Interrupted, TrainingError
from kinfold.grid.plan import Cell
from kinfold.grid.run import CellOptions, Outcome, Told, run_cell
from kinfold.grid.tables import Tables
from kinfold.lock import AVAILABLE

_READY, _STOPPED = "ready", "stopped"


def run_in_processes(
    cells: Sequence[Cell], options: CellOptions, n_processes: int, *, wait_for_others: bool, told: Told
) -> dict[Cell, Outcome]:
    """Run cells in worker processes; a process that dies fails its cell alone.

    Args:
        cells: what to run; each goes to the next process that is free.
        options: of the grid.
        n_processes: how many; each computes with one thread.
        wait_for_others: for cells that another grid runs.
        told: is called after each cell.

    Raises:
        ConfigError: this system cannot lock files.
        TrainingError: a process cannot start.
        KeyboardInterrupt: stopped, after the processes have saved.
    """
    if not AVAILABLE:
        raise ConfigError("several processes need file locks, which this system does not have: leave --processes at 1.")
    todo, outcomes = list(cells), dict[Cell, Outcome]()
    workers: list[_Worker] = []
    try:
        while todo or any(worker.cell for worker in workers):
            n_wanted = min(n_processes, len(todo) + sum(worker.cell is not None for worker in workers))
            while sum(worker.is_alive for worker in workers) < n_wanted:
                workers.append(_Worker(options, wait_for_others))
            for worker in workers:
                if todo and worker.is_ready and worker.cell is None:
                    worker.give(todo.pop(0))
            for cell, outcome in _answers(workers):
                outcomes[cell] = outcome
                told(cell, outcome)
    finally:
        _stop(workers)
    return outcomes


class _Worker:
    """A process, the pipe to it, and the cell that it is at."""

    def __init__(self, options: CellOptions, wait_for_others: bool):
        context = get_context("spawn")
        self.pipe, other_end = context.Pipe()
        # Not a daemon: the cell may load its images in processes of its own.
        self.process = context.Process(target=_work, args=(other_end, options, wait_for_others))
        with _one_thread(), _no_interrupt():
            self.process.start()
        other_end.close()
        self.cell: Cell | None = None
        self.is_alive, self.is_ready = True, False

    def give(self, cell: Cell) -> None:
        self.cell = cell
        with suppress(BrokenPipeError):  # it died: seen when its answer is read
            self.pipe.send(cell)

    def take(self) -> tuple[Cell, Outcome] | None:
        """Return a cell and what became of it, or nothing at the first sign of life; a process that died has failed its cell."""
        cell, self.cell = self.cell, None
        try:
            answer = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            self.is_alive, was_ready, self.is_ready = False, self.is_ready, False
            if not was_ready:
                raise TrainingError(f"a worker process cannot start (exit code {self.process.exitcode}).") from None
            answer = Outcome("failed", f"its process died (exit code {self.process.exitcode}): is there enough memory?")
        if answer == _STOPPED:
            raise KeyboardInterrupt
        self.is_ready = self.is_alive
        return None if cell is None or answer == _READY else (cell, answer)


def _stop(workers: Sequence[_Worker]) -> None:
    """Let all of them save and end; asked twice, kill them."""
    try:
        for worker in workers:
            worker.pipe.close()  # who waits for a cell ends by this
            if worker.cell is not None and worker.process.is_alive() and worker.process.pid:
                os.kill(worker.process.pid, signal.SIGINT)
        for worker in workers:
            worker.process.join()
    except KeyboardInterrupt:
        for worker in workers:
            worker.process.kill()
        raise


def _answers(workers: Sequence[_Worker]) -> list[tuple[Cell, Outcome]]:
    """Wait for at least one process to say something."""
    pipes: dict[Any, _Worker] = {worker.pipe: worker for worker in workers if worker.is_alive}
    said = [pipes[pipe].take() for pipe in wait(list(pipes))]
    return [answer for answer in said if answer is not None]


def _work(pipe: Connection, options: CellOptions, wait_for_others: bool) -> None:
    """Run what comes through the pipe until it closes; Ctrl-C reaches the parent alone, which tells each process once."""
    import torch

    with suppress(KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionResetError):
        os.setpgrp()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        torch.set_num_threads(1)
        keep_freed_memory()
        tables = Tables()
        pipe.send(_READY)
        while True:
            cell = pipe.recv()
            try:
                pipe.send(run_cell(cell, options, tables, wait=wait_for_others))
            except (Interrupted, KeyboardInterrupt):
                pipe.send(_STOPPED)


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Hold Ctrl-C back inside the block, and in processes that are started there until they let it through."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Have processes that are started inside the block compute with one thread: libraries read it when they are loaded."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
