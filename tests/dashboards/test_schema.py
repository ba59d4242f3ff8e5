"""The dashboards are of the types that Grafana's own package `@grafana/schema` has: as a whole, and
each panel's options. Needs npm and its registry; left out, and told, where they are not.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.dashboards.documents import boards

PACKAGES = ("@grafana/schema@12.4.11", "typescript@5.9.3")
_RAW = "@grafana/schema/dist/esm/raw/composable"
_HEAD = f"""
import type {{ Dashboard }} from '@grafana/schema';
import type {{ Options as timeseries }} from
  '{_RAW}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type {{ Options as stat }} from '{_RAW}/stat/panelcfg/x/StatPanelCfg_types.gen';
import type {{ Options as table }} from '{_RAW}/table/panelcfg/x/TablePanelCfg_types.gen';
import type {{ Options as heatmap }} from '{_RAW}/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
// JSON has words where TypeScript has enumerations of them.
type Plain<T> = T extends string ? `${{T}}` : T extends number ? number
  : T extends (infer U)[] ? Plain<U>[] : T extends object ? {{ [K in keyof T]: Plain<T[K]> }} : T;
"""
_SETTINGS = {
    "compilerOptions": {
        "strict": True,
        "noEmit": True,
        "skipLibCheck": True,
        "module": "esnext",
        "moduleResolution": "bundler",
        "target": "es2022",
    },
    "files": ["check.ts"],
}


@pytest.fixture(scope="module")
def compiler(request: pytest.FixtureRequest) -> Path:
    """A folder with the packages, kept from one run to the next."""
    place = request.config.cache.mkdir("grafana-schema")
    wanted = place / "installed"
    if not wanted.exists() or wanted.read_text() != repr(PACKAGES):
        npm = shutil.which("npm")
        if not npm:
            pytest.skip("no npm")
        (place / "package.json").write_text("{}")
        done = subprocess.run(
            [npm, "install", "--silent", "--no-audit", "--no-fund", *PACKAGES],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"npm has not got {', '.join(PACKAGES)}: {done.stderr.strip()[-200:]}")
        wanted.write_text(repr(PACKAGES))
    return Path(place)


def check(compiler: Path, source: str) -> str:
    """What the compiler finds wrong."""
    (compiler / "tsconfig.json").write_text(json.dumps(_SETTINGS))
    (compiler / "check.ts").write_text(_HEAD + source)
    node = shutil.which("node") or "node"
    program = compiler / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        [node, str(program), "-p", str(compiler)], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_the_dashboards_are_of_grafanas_types(compiler: Path) -> None:
    lines = []
    for name, board in boards().items():
        known = f"b_{name.removesuffix('.json').replace('-', '_')}"
        lines.append(f"export const {known}: Plain<Dashboard> = {json.dumps(board)};")
        for number, panel in enumerate(board["panels"]):
            kind, options = panel["type"], json.dumps(panel["options"])
            lines.append(f"export const {known}_{number}: Plain<Partial<{kind}>> = {options};")
    assert check(compiler, "\n".join(lines)) == ""


def test_the_check_finds_what_is_wrong(compiler: Path) -> None:
    (board, *_) = boards().values()
    for wrong, said in (
        ({"graphTooltip": "no number"}, "'string' is not assignable to type 'number'"),
        ({"panel": []}, "'\"panel\"' does not exist"),
    ):
        text = json.dumps(board | wrong)
        assert said in check(compiler, f"export const wrong: Plain<Dashboard> = {text};")
    options = check(compiler, "export const o: Plain<Partial<stat>> = {colorMode: 'pink'};")
    assert "pink" in options
