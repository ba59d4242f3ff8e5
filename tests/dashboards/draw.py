"""Draws all dashboards with Grafana's own components: `python -m tests.dashboards.draw [FOLDER]`.

They show six hours of a simulated fleet (life.py), forty times as fast: a real Prometheus scrapes
it and evaluates the committed rules. The times on the axes are those of the fleet.
Needs Prometheus (2.44 or later, for sums of native histograms; `PROMETHEUS` is its path), promtool,
npm and its registry, Chromium, and ten minutes on an idle machine. People check the result.
`pngquant`, if installed, makes it small.
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

from tests.dashboards import life
from tests.dashboards.documents import ALL, FOLDER, boards, panels
from tests.dashboards.pace import in_rules

PACKAGES = (
    *(f"@grafana/{name}@12.4.10" for name in ("ui", "data", "schema")),
    *("react@18", "react-dom@18", "esbuild"),
)
SOURCE = Path(__file__).with_name("drawing") / "draw.tsx"
PACE = 0.025
"""Seconds here for a second of the fleet."""
LEFT_OUT_H = 0.5
"""At the beginning, until the windows of the rules are full."""
OPERATOR = life.REGRESSED
WIDTH = 1200
PAGE = (
    '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="bundle.css">'
    '<body style="margin: 8px; background: {back}"><div id="root"></div>'
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


def draw(place: Path, board: dict[str, Any], task: dict[str, Any], to: Path) -> None:
    """Draws one picture; reports empty panels."""
    page = place / "page.html"
    mode, width = task["mode"], task["width"]
    text = PAGE.replace("{back}", "#f4f5f5" if mode == "light" else "#111217")
    filled = json.dumps({"board": board, **task}).replace("<", "\\u003c")
    page.write_text(text.replace("{task}", filled))
    height = 24 + 38 * max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in board["panels"])
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options = [f"--window-size={width + 16},{height}", "--virtual-time-budget=20000"]
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


def task(store: str, now: float, mode: str) -> dict[str, Any]:
    """What all pictures until `now` have in common."""
    shown_s = (life.HOURS - LEFT_OUT_H) * 3600 * PACE
    everything = dict.fromkeys(ALL, ".*")
    return {
        "store": store,
        "from": now - shown_s,
        "to": now,
        "pace": PACE,
        # On the axes, a little after a full hour, so that the hour's label fits.
        "shownTo": 20_697 * 86_400 + 18.2 * 3600,
        "step": 60 * PACE,
        "set": {
            "__rate_interval": f"{300 * PACE:.0f}s",
            "__range": f"{shown_s:.0f}s",
            "operator": OPERATOR,
            "quantile": "0.95",
            **everything,
        },
        "width": WIDTH,
        "mode": mode,
    }


def paced_board(board: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(board))
    for panel in panels(made):
        for target in panel["targets"]:
            target["expr"] = in_rules(target["expr"], PACE)
    return made


def main(folder: Path, program: str, bundled: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix="opscope-draw-") as name:
        place = Path(name)
        made = Path(bundled) if bundled else place
        if not bundled:
            bundle(made)
        (place / "store").mkdir()
        with life.prometheus(Path(program), place / "store", PACE) as store:
            time.sleep(life.HOURS * 3600 * PACE)
            now = time.time()
            for name, board in boards().items():
                short = name.removeprefix("opscope-").removesuffix(".json")
                for mode in ("light", "dark") if short == "fleet" else ("light",):
                    if short != "serving":
                        to = folder / f"{short}{'-dark' if mode == 'dark' else ''}.png"
                        draw(made, paced_board(board), task(store.url, now, mode), to)


if __name__ == "__main__":
    main(
        Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / "pictures",
        os.environ.get("PROMETHEUS") or shutil.which("prometheus") or "prometheus",
        os.environ.get("BUNDLE"),
    )
