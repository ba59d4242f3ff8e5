"""Draws all dashboards with Grafana's own components: `python -m tests.dashboards.draw [FOLDER]`.

They show a simulated fleet with one straggler and a real host, as in test_in_prometheus.py: all
with native histograms, then one operator again with classic ones. The rules run fast enough to fill
their windows soon, because a graph without data looks like a fault.
Needs Prometheus (2.44 or later, for sums of native histograms; `PROMETHEUS` is its path), npm and
its registry, Chromium, and ten minutes on an idle machine. People check the result. `pngquant`, if
installed, makes it small.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.dashboards.documents import FOLDER, boards
from tests.dashboards.fleet import Fleet
from tests.dashboards.live import beside_a_real_host

PACKAGES = (
    *(f"@grafana/{name}@12.4.10" for name in ("ui", "data", "schema")),
    *("react@18", "react-dom@18", "esbuild"),
)
SOURCE = Path(__file__).with_name("drawing") / "draw.tsx"
FLEET = Fleet(
    7,
    hosts=24,
    operators=12,
    samples=60,
    slowdown=1.4,
    versions=("1.4", "1.5"),
    factors=(1.0, 1.08),
)
PACE = 0.05
"""Seconds here for a quarter of an hour in the rules: 45."""
SHOWN_S, STEP_S, TICK_S = 120, 2, 30
GATHER_S, GATHER_CLASSIC_S = 60 + SHOWN_S + TICK_S, 30 + SHOWN_S + TICK_S
"""Seconds until the windows are full at the beginning of the graphs."""
OPERATOR = "aten::bmm"
"""An operator that is compared between hosts, so not one of communication."""
WIDTH = 1200
PAGE = (
    '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="bundle.css">'
    '<body style="margin: 8px; background: #f4f5f5"><div id="root"></div>'
    '<script>window.TASK = {task}</script><script src="bundle.js"></script>'
)


def bundle(place: Path) -> None:
    """The drawing program, built in `place` from its source and the packages."""
    (place / "package.json").write_text("{}")
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", *PACKAGES], cwd=place, check=True)
    shutil.copy(SOURCE, place)
    loaders = [f"--loader:.{kind}=dataurl" for kind in ("svg", "woff2", "ttf")]
    made = ["--bundle", "--outfile=bundle.js", '--define:process.env.NODE_ENV="production"']
    command = ["node_modules/.bin/esbuild", SOURCE.name, *made, *loaders, "--log-level=error"]
    subprocess.run(command, cwd=place, check=True)


def draw(
    place: Path, board: dict[str, Any], store: str, variables: dict[str, str], to: Path
) -> None:
    """Draws one picture; reports empty panels."""
    # Half a tick after the last one, so that its label fits.
    now = (int(time.time()) - TICK_S // 2) // TICK_S * TICK_S + TICK_S // 2
    task = {
        "board": board,
        "store": store,
        "from": now - SHOWN_S,
        "to": now,
        "step": STEP_S,
        "set": {"__rate_interval": f"{300 * PACE:.0f}s"} | variables,
        "width": WIDTH,
    }
    page = place / "page.html"
    page.write_text(PAGE.replace("{task}", json.dumps(task).replace("<", "\\u003c")))
    height = 24 + 38 * max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in board["panels"])
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options = [f"--window-size={WIDTH + 16},{height}", "--virtual-time-budget=20000"]
    profile = f"--user-data-dir={place / 'profile'}"
    common = [*browser, *options, profile]
    subprocess.run([*common, f"--screenshot={to}", page.as_uri()], check=True, capture_output=True)
    done = subprocess.run(
        [*common, "--dump-dom", page.as_uri()], check=True, capture_output=True, text=True
    )
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    print(to.name, title[1] if title else "?", flush=True)
    if shutil.which("pngquant"):
        quantize = ["pngquant", "--force", "--skip-if-larger", "--output", str(to), "64", str(to)]
        subprocess.run(quantize, check=False)


def main(folder: Path, program: str, bundled: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix="opscope-draw-") as name:
        place = Path(name)
        made = Path(bundled) if bundled else place
        if not bundled:
            bundle(made)
        for native in (True, False):
            run(place / ("native" if native else "classic"), made, folder, program, native)


def run(place: Path, made: Path, folder: Path, program: str, native: bool) -> None:
    environ = {"OTEL_RESOURCE_ATTRIBUTES": "service.version=2.0", "OPENBLAS_NUM_THREADS": "1"}
    live = beside_a_real_host(
        Path(program), place, FLEET, native=native, pace=PACE, lines_every_s=5, environ=environ
    )
    with live as store:
        time.sleep(GATHER_S if native else GATHER_CLASSIC_S)
        every = dict.fromkeys(("service", "host", "model"), ".*")
        for name, board in boards().items():
            short = name.removeprefix("opscope-").removesuffix(".json")
            if not native and short != "operator":
                continue
            variables = every | {"operator": OPERATOR, "quantile": "0.95"}
            to = folder / f"{short}{'' if native else '-classic'}.png"
            draw(made, board, store.url, variables, to)


if __name__ == "__main__":
    main(
        Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / "pictures",
        os.environ.get("PROMETHEUS") or shutil.which("prometheus") or "prometheus",
        os.environ.get("BUNDLE"),
    )
