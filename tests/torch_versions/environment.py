"""Make an environment with one version of PyTorch: `python -m tests.torch_versions.environment -h`.

    .venv/bin/python -m tests.torch_versions.environment 2.9.1 build/torch-2.9.1
    build/torch-2.9.1/bin/python -m pytest tests/bridges/test_torch_values.py

The new environment has PyTorch and the packages that it needs on the CPU. All else comes from the
environment that makes it: Opscope as it is in the tree, pytest. PyPI's releases are built for CUDA;
they are imported without CUDA's packages (cuda_stubs.py). A build for the CPU, where pip finds one,
is taken as it is. The download is 0.5 to 0.9 GB, and the environment takes 0.7 GB. A small model is
trained in it under torch.profiler before it is ready.

Found on x86-64: Python 3.11 and 3.12 have a wheel of every release from 2.4 to 2.15; 3.13 has those
from 2.5 on, 3.10 those up to 2.14. All 13 of matrix.RELEASES are imported, train and profile with
Python 3.11. torch.profiler of a build for CUDA writes "gpuGetDeviceCount failed with code 100" to
stderr from 2.6 on, as there is no device.
"""

import argparse
import shutil
import subprocess
import sysconfig
import tempfile
import venv
from pathlib import Path

from tests.torch_versions import wheel

_TRIAL = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
    model(torch.ones(3, 4)).square().sum().backward()
    optimizer.step()
assert {"aten::addmm", "AddmmBackward0"} <= {event.key for event in profile.key_averages()}
assert not torch.cuda.is_available()
print(torch.__version__)
"""


def make(version: str, folder: Path) -> Path:
    """Its Python. The folder must not exist yet; if this fails, it does not exist afterwards."""
    folder.mkdir(parents=True)
    try:
        return _make(version, folder)
    except BaseException:
        shutil.rmtree(folder)
        raise


def _make(version: str, folder: Path) -> Path:
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    with tempfile.TemporaryDirectory(dir=folder) as downloaded:
        wheel.unpack(wheel.download(version, Path(downloaded)), site)
    # After its own packages, those of this environment; with their .pth files, so editable ones.
    link = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (site / "beside.pth").write_text(link)
    command = folder / "bin" / "opscope"
    command.write_text(f"#!{python.absolute()}\nfrom opscope.cli import main\nmain()\n")
    command.chmod(0o755)
    tried = subprocess.run(
        [python, "-W", "ignore", "-c", _TRIAL], stdout=subprocess.PIPE, text=True, check=True
    )
    assert tried.stdout.split("+")[0].strip() == version, tried.stdout
    return python


def main() -> None:
    description = "Make an environment with one version of PyTorch."
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("version", help="of PyTorch, for example 2.9.1")
    parser.add_argument("folder", type=Path, help="where the environment is made")
    options = parser.parse_args()
    print(make(options.version, options.folder))


if __name__ == "__main__":
    main()
