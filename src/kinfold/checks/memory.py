"""What one training step takes: bytes kept for the backward pass, and how far the process grows."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

STATUS = Path("/proc/self/statm")
PAUSE = 0.005


@dataclass
class StepMemory:
    """Filled in while a step is made.

    Attributes:
        saved: bytes of activations that autograd kept for the backward pass, weights left out.
        rise: how far the memory in use rose at its highest: that of the accelerator, or the process's; `None` where it cannot be told.
    """

    saved: int = 0
    rise: int | None = None
    _storages: dict[int, int] = field(default_factory=dict, repr=False)


@contextmanager
def measured_memory(device: torch.device, weights: Iterable[Tensor]) -> Iterator[StepMemory]:
    """Measure what the step inside takes.

    Args:
        device: where the step computes.
        weights: tensors that are there anyway.

    Example:
        >>> x = torch.ones(1000, requires_grad=True)
        >>> with measured_memory(torch.device("cpu"), [x]) as memory:
        ...     (x.exp() + 1).sum().backward()
        >>> memory.saved
        4000
    """
    found = StepMemory()
    known = {_place(weight) for weight in weights}

    def keep(tensor: Tensor) -> Tensor:
        if _place(tensor) not in known:
            found._storages[_place(tensor)] = tensor.untyped_storage().nbytes()
        return tensor.detach()  # the tensor itself would hold its own graph

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), _highest(device, found):
        yield found
    found.saved = sum(found._storages.values())


def largest(steps: Sequence[StepMemory]) -> StepMemory:
    """Return the largest of each number; a process, for one, hardly rises in any step but the first.

    Example:
        >>> largest([StepMemory(saved=30, rise=200), StepMemory(saved=40, rise=10)])
        StepMemory(saved=40, rise=200)
    """
    rises = [step.rise for step in steps if step.rise is not None]
    return StepMemory(saved=max(step.saved for step in steps), rise=max(rises, default=None))


def bytes_of_tensors(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of some tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@contextmanager
def _highest(device: torch.device, found: StepMemory) -> Iterator[None]:
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        yield
        found.rise = torch.cuda.max_memory_allocated(device) - before
    elif STATUS.exists():
        with _watched(found):
            yield
    else:
        yield


@contextmanager
def _watched(found: StepMemory) -> Iterator[None]:
    """Look at the size of the process every few milliseconds; torch lets go of the interpreter while it computes."""
    before, highest, is_done = _resident(), [0], threading.Event()

    def watch() -> None:
        while not is_done.wait(PAUSE):
            highest[0] = max(highest[0], _resident() - before)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_done.set()
        watcher.join()
        found.rise = max(highest[0], _resident() - before)


def _resident() -> int:
    return int(STATUS.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
