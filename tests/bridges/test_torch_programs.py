"""Real, unmodified PyTorch programs run unchanged when observed, and their operators are seen."""

import re
import socket
import sys
from pathlib import Path

import pytest

from .torch_observed import counts, observed, observed_fork, observing, run

pytestmark = pytest.mark.slow

DIGITS = """
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
data, target = load_digits(return_X_y=True)
inputs = torch.tensor(data, dtype=torch.float32) / 16
targets = torch.tensor(target)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(60):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
print((model(inputs).argmax(1) == targets).float().mean().item() > 0.8)
"""

TRANSFORMER = """
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)
model = nn.TransformerEncoder(layer, 2)
head = nn.Linear(32, 7)
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()])
inputs, targets = torch.randn(4, 6, 32), torch.randint(0, 7, (4, 6))
for _ in range(10):
    optimizer.zero_grad()
    logits = head(model(inputs))
    nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    optimizer.step()
print(logits.shape)
"""

SCRIPTED = """
import os
import torch
from typing import List

def heavy(x: torch.Tensor) -> torch.Tensor:
    for _ in range(20):
        x = torch.tanh(x @ x)
    return x

@torch.jit.script
def fan_out(x: torch.Tensor) -> torch.Tensor:
    futures: List[torch.jit.Future[torch.Tensor]] = []
    for i in range(8):
        futures.append(torch.jit.fork(heavy, x + i))
    total = torch.zeros_like(x)
    for future in futures:
        total = total + torch.jit.wait(future)
    return total

heavy = torch.jit.script(heavy)
x = torch.eye(16) / 16
for _ in range(50):
    with torch.inference_mode():
        y = fan_out(x)
print(y.shape, flush=True)
# The threads of the tasks end the process now and then while it exits, observed or not: seen with
# PyTorch 2.7.
os._exit(0)
"""

LOADED = """
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), float(index)).square()

if __name__ == "__main__":
    total = torch.zeros(4)
    for batch in DataLoader(Squares(), batch_size=8, num_workers=2):
        total += batch.sum(0)
    print(total.tolist())
"""

RANK = """
import os
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
total = torch.ones(1)
dist.all_reduce(total)
print(f"{dist.get_rank()}:{total.item()}\\n", end="", flush=True)
dist.destroy_process_group()
# PyTorch's gloo threads now and then end the process while it exits, observed or not.
os._exit(0)
"""


def test_training_on_digits(tmp_path: Path) -> None:
    assert observed(tmp_path, DIGITS) == "True\n"
    found = counts(tmp_path / "segments")
    assert found.calls["AddmmBackward0"] == 120
    assert found.calls["Optimizer.step#SGD.step"] == 60
    assert found.calls["aten::cross_entropy_loss"] == 60
    (process,) = found.snapshot.processes
    assert process.bridges["torch"] == "attached"


def test_training_a_transformer(tmp_path: Path) -> None:
    assert observed_fork(tmp_path, TRANSFORMER) == "torch.Size([4, 6, 7])\n"
    found = counts(tmp_path / "segments")
    assert found.calls["aten::scaled_dot_product_attention"] == 20
    assert found.calls["NativeLayerNormBackward0"] == 40
    assert found.snapshot.health.dropped == 0


def test_torchscript_with_forked_tasks(tmp_path: Path) -> None:
    assert observed_fork(tmp_path, SCRIPTED) == "torch.Size([16, 16])\n"
    found = counts(tmp_path / "segments")
    assert found.calls["aten::tanh"] == 50 * 8 * 20
    assert found.calls["aten::add"] == 50 * 8 * 3  # with a number: one that calls another
    assert found.snapshot.health.dropped == 0


def test_a_data_loader_with_two_workers(tmp_path: Path) -> None:
    expected = float(sum(i * i for i in range(64)))
    assert observed_fork(tmp_path, LOADED) == f"{[expected] * 4}\n"
    found = counts(tmp_path / "segments")
    assert len(list((tmp_path / "segments").glob("*.seg"))) == 3
    assert found.calls["aten::square"] == 64
    loading = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    assert found.phases[loading] == {"data"}


def test_two_ranks_with_gloo(tmp_path: Path) -> None:
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    place = ["--master-addr=127.0.0.1", f"--master-port={port}", str(script)]
    done = run([*launch, *place], tmp_path, observing(tmp_path, {}))
    assert done.returncode == 0, done.stderr[-4000:]
    # From PyTorch 2.8 on, some builds print that "[Gloo] Rank 0 is connected to 1 peer ranks", in
    # pieces: on a slow machine the two ranks' lines are mixed.
    said = re.findall(r"^\d:.+$", done.stdout, re.MULTILINE)
    assert sorted(said) == ["0:2.0", "1:2.0"]
    found = counts(tmp_path / "segments")
    ranks = [p for p in found.snapshot.processes if p.notes.get("rank")]
    assert sorted(p.notes["rank"] for p in ranks) == ["0", "1"]
    assert sorted(p.notes["local_rank"] for p in ranks) == ["0", "1"]
    assert {p.notes["world_size"] for p in ranks} == {"2"}
    assert found.calls["DistributedDataParallel.forward"] == 10
    assert found.calls["gloo:all_reduce"] > 0
    assert found.phases["gloo:all_reduce"] == {"comm"}
    assert found.phases["c10d::allreduce_"] == {"comm"}
