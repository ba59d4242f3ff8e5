"""Takes the picture of the agent's page: `python -m tests.server.draw_page [FILE]`.

An agent observes two programs for some minutes. Needs PyTorch, scikit-learn and Chromium. People
check the result. `pngquant`, if installed, makes it small.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from opscope import demo_digits
from tests.exporters.peers import free_port

MINUTES = 5
WIDTH, HEIGHT = 1280, 1240
DIGITS = Path(demo_digits.__file__)
PROGRAMS = {
    "transformer": [str(Path(__file__).parent / "programs" / "transformer.py")],
    "digits": ["-c", f"exec(open({str(DIGITS)!r}).read())", "100000"],
}
_OPSCOPE = str(Path(sys.executable).parent / "opscope")


def shot(
    url: str, to: Path, width: int = WIDTH, height: int = HEIGHT, *, dark: bool = False
) -> None:
    """The page, after it has asked for its numbers for ten seconds."""
    with tempfile.TemporaryDirectory() as profile:
        browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options = [f"--window-size={width},{height}", f"--screenshot={to}"]
        options += ["--virtual-time-budget=11000"]
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        command = [*browser, *options, scheme, f"--user-data-dir={profile}", url]
        subprocess.run(command, check=True, capture_output=True)
    if shutil.which("pngquant"):
        quantize = ["pngquant", "--force", "--skip-if-larger", "--output", str(to), "128", str(to)]
        subprocess.run(quantize, check=False)


def main(to: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="drawn-") as place:
        environ = {**os.environ, "OPSCOPE_DIR": place, "OPSCOPE_INTERVAL_S": "10"}
        address = f"127.0.0.1:{free_port()}"
        started = [
            subprocess.Popen(
                [_OPSCOPE, "run", "--", sys.executable, *program],
                env={**environ, "OTEL_SERVICE_NAME": service},
            )
            for service, program in PROGRAMS.items()
        ]
        agent = [_OPSCOPE, "agent", "--listen", address]
        started.append(subprocess.Popen(agent, env=environ))
        try:
            time.sleep(60 * MINUTES)
            # The page's first answer is then of the time since.
            urlopen(f"http://{address}/api/live").close()
            time.sleep(11)
            shot(f"http://{address}/", to)
        finally:
            for one in started:
                one.kill()
                one.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("agent/live-page.png"))
