"""The command line keeps freed memory; where that cannot be set, nothing happens."""

import ctypes
import subprocess
import sys

import pytest

from kinfold.allocator import keep_freed_memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the settings are those of glibc")
def test_large_blocks_are_not_mapped_anew_each_time():
    code = """
import resource, sys
from kinfold.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
import torch
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.empty(20_000_000).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""
    kept, given_back = (
        int(subprocess.run([sys.executable, "-c", code, how], check=True, capture_output=True, text=True).stdout)
        for how in ("keep", "not")
    )
    assert kept < given_back / 2


@pytest.mark.parametrize("fault", [OSError, AttributeError])
def test_another_c_library_is_left_as_it_is(monkeypatch, fault):
    def absent(_: object):
        raise fault

    monkeypatch.setattr(ctypes, "CDLL", absent)
    assert keep_freed_memory() is False
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False
