"""Run programs in forks of a process that has made their imports: that of PyTorch takes 3 s of CPU
time, those of pytest and NumPy half a second.

To Opscope such a program is one whose framework was imported before Opscope starts, as by a path
file. What an import itself does, and what depends on a process's command line, is shown by programs
that are started anew.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

# Reads one program a line. Its child leaves the loop, runs the program as `python FILE` does, and
# ends as any interpreter does; the server answers with the child's exit status.
_SERVER = """
import json, os, sys
{imports}

def become(script, directory, environ, stdout, stderr):
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, place in enumerate((os.devnull, stdout, stderr)):
        opened = os.open(place, writing if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)
    sys.path[0] = os.path.dirname(script)
    sys.argv[:] = [script]

def start_opscope():
    # As site does, which has run already.
    if os.environ.get("OPSCOPE_ATTACH") == "1":
        sys.path.insert(0, os.environ["PYTHONPATH"].partition(os.pathsep)[0])
        sys.modules.pop("sitecustomize", None)
        try:
            import sitecustomize
        except ImportError:
            pass  # there is none of the user's

def run(script):
    main = type(sys)("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    with open(script) as file:
        code = compile(file.read(), script, "exec")
    exec(code, vars(main))

for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        become(**order)
        start_opscope()
        run(order["script"])
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def _attaches(place: str) -> bool:
    """Whether Python attaches Opscope from that folder of PYTHONPATH, which the server must not."""
    return Path(place, "sitecustomize.py").exists()


class ForkedPrograms:
    """A process that has run `imports`, started with the first program."""

    def __init__(self, imports: str) -> None:
        self._imports = imports
        self._server: subprocess.Popen[str] | None = None

    def run(
        self, script: Path, directory: Path, environ: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Runs the file with `directory` as its current directory, until it ends."""
        server = self._started(environ)
        assert server.stdin is not None and server.stdout is not None
        with tempfile.TemporaryDirectory() as place:
            said, wrong = Path(place, "stdout"), Path(place, "stderr")
            order = {"script": str(script), "directory": str(directory), "environ": dict(environ)}
            order |= {"stdout": str(said), "stderr": str(wrong)}
            server.stdin.write(json.dumps(order) + "\n")
            server.stdin.flush()
            if not select.select([server.stdout], [], [], timeout_s)[0]:
                self.end()
                raise subprocess.TimeoutExpired([str(script)], timeout_s)
            status = server.stdout.readline()
            assert status, "the process that forks has ended"
            return subprocess.CompletedProcess(
                [str(script)], int(status), said.read_text(), wrong.read_text()
            )

    def _started(self, environ: Mapping[str, str]) -> subprocess.Popen[str]:
        if self._server is None or self._server.poll() is not None:
            kept = {key: value for key, value in environ.items() if not key.startswith("OPSCOPE")}
            places = kept.pop("PYTHONPATH", "").split(os.pathsep)
            kept["PYTHONPATH"] = os.pathsep.join(place for place in places if not _attaches(place))
            kept["OMP_NUM_THREADS"] = kept["OPENBLAS_NUM_THREADS"] = "1"
            self._server = subprocess.Popen(
                [sys.executable, "-c", _SERVER.format(imports=self._imports)],
                env=kept,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            atexit.register(self.end)
        return self._server

    def end(self) -> None:
        if self._server is not None:
            with contextlib.suppress(OSError), self._server:
                self._server.kill()
        self._server = None


WITH_TORCH = ForkedPrograms("import torch")
WITH_EXPORT = ForkedPrograms("import torch, torch._dynamo, torch.export._trace")
"""What torch.export imports when it is first called takes as long as PyTorch itself."""
WITH_PYTEST = ForkedPrograms(
    "import numpy, pytest; from _pytest.config import get_config; get_config()"
)
"""The last imports pytest's own plugins."""
