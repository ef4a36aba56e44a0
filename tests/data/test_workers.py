"""Worker processes and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kinfold.data.workers import quiet


def test_a_worker_keeps_other_errors_than_a_lost_connection(capsys, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    before = signal.getsignal(signal.SIGINT)
    try:
        quiet(0)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    sys.excepthook(ConnectionResetError, ConnectionResetError("peer"), None)
    assert capsys.readouterr().err == ""
    sys.excepthook(ValueError, ValueError("a fault"), None)
    assert "ValueError: a fault" in capsys.readouterr().err


SCRIPT = """
import multiprocessing, sys, time
import torch
from kinfold.data.datasets import ImageFiles
from kinfold.data.loader import ImageLoader
from kinfold.data.samplers import SequentialBatchSampler
from kinfold.images.preprocessing import Preprocessing

if __name__ == "__main__":
    paths = sys.argv[2:] * 2000
    n = len(paths)
    loader = ImageLoader(ImageFiles(paths), torch.zeros(n, dtype=torch.long), transform=Preprocessing(size=8),
                         sampler=SequentialBatchSampler(n, 2), workers=2 if sys.argv[1] == "fork" else 1, start_method=sys.argv[1])
    try:
        for number, batch in enumerate(loader.epoch(0)):
            if number == 3:
                print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    except KeyboardInterrupt:
        print("left", flush=True)
"""


@pytest.mark.parametrize("start_method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_ctrl_c_ends_the_workers_without_a_word(paths, start_method, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), start_method, *map(str, paths[:4])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == (2 if start_method == "fork" else 1)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (output, errors, process.returncode) == ("left\n", "", 0)
    end = time.monotonic() + 5
    while time.monotonic() < end and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
