"""The dashboards conform to the types of Grafana's package `@grafana/schema`: each dashboard, and
each panel's options, fields and overrides, whose types depend on the kind of panel. Needs npm and
its registry; skipped, with the reason, without them."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.documents import boards

PACKAGES = ("@grafana/schema@12.4.11", "typescript@5.9.3")
_RAW = "@grafana/schema/dist/esm/raw/composable"
_HEAD = f"""
import type {{ AnnotationQuery, Dashboard, FieldConfig, FieldConfigSource }} from '@grafana/schema';
import type * as timeseries from '{_RAW}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type * as table from '{_RAW}/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as heatmap from '{_RAW}/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import type * as statushistory from
  '{_RAW}/statushistory/panelcfg/x/StatusHistoryPanelCfg_types.gen';
import type {{ Options as TextOptions }} from '{_RAW}/text/panelcfg/x/TextPanelCfg_types.gen';
import type {{ Options as StatOptions }} from '{_RAW}/stat/panelcfg/x/StatPanelCfg_types.gen';
// They have no options of fields beside those of every panel.
declare namespace stat {{
  export type Options = StatOptions;
  export type FieldConfig = {{ none?: never }};
}}
declare namespace text {{
  export type Options = TextOptions;
  export type FieldConfig = {{ none?: never }};
}}
// JSON has words where TypeScript has enumerations of them.
type Plain<T> = T extends string ? `${{T}}` : T extends number ? number
  : T extends (infer U)[] ? Plain<U>[] : T extends object ? {{ [K in keyof T]: Plain<T[K]> }} : T;
// The type of annotations has the target of a data source. These are of Grafana's own, by tags, and
// of Prometheus, whose settings lie beside the others.
type Tags = {{ type: 'tags', tags: string[], matchAny: boolean, limit: number }};
type Annotated = Omit<Plain<AnnotationQuery>, 'target'> & {{ target: Tags }};
type FromData = Omit<Plain<AnnotationQuery>, 'target'> & {{
  expr: string, useValueForTime: 'on', step: string, titleFormat: string, textFormat: string,
}};
type Board = Omit<Plain<Dashboard>, 'annotations'>
  & {{ annotations: {{ list: (Annotated | FromData)[] }} }};
type Custom<T> = {{ [K in keyof T]?: Plain<T[K]> }};
type Fields<T> = Omit<Plain<FieldConfigSource>, 'defaults'> & {{
  defaults: {{ [K in Exclude<keyof FieldConfig, 'custom'>]?: Plain<FieldConfig[K]> }}
    & {{ custom?: Custom<T> }};
}};
type Overridden<T> = {{
  [K in Exclude<keyof FieldConfig, 'custom'>]?: Plain<FieldConfig[K]>;
}} & {{ [K in keyof T & string as `custom.${{K}}`]?: Plain<T[K]> }};
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
    """A folder with the packages, kept between runs."""
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
    """The compiler's errors."""
    (compiler / "tsconfig.json").write_text(json.dumps(_SETTINGS))
    (compiler / "check.ts").write_text(_HEAD + source)
    node = shutil.which("node") or "node"
    program = compiler / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        [node, str(program), "-p", str(compiler)], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_dashboards_are_of_grafanas_types(compiler: Path) -> None:
    lines = []
    for name, board in boards().items():
        known = f"b_{name.removesuffix('.json').replace('-', '_')}"
        lines.append(f"export const {known}: Board = {json.dumps(board)};")
        for number, panel in enumerate(board["panels"]):
            lines += of_panel(f"{known}_{number}", panel)
    assert check(compiler, "\n".join(lines)) == ""


def of_panel(name: str, panel: dict[str, Any]) -> list[str]:
    """The parts to check, by types of their kind."""
    kind, fields = panel["type"].replace("-", ""), panel["fieldConfig"]
    checked = [
        (f"Plain<Partial<{kind}.Options>>", panel["options"]),
        (f"Fields<{kind}.FieldConfig>", fields),
        *(
            (f"Overridden<{kind}.FieldConfig>", {one["id"]: one["value"]})
            for override in fields["overrides"]
            for one in override["properties"]
        ),
    ]
    return [
        f"export const {name}_{number}: {type_} = {json.dumps(value)};"
        for number, (type_, value) in enumerate(checked)
    ]


NO_NUMBER = "'string' is not assignable to type 'number'"


def panel(kind: str, **changed: Any) -> dict[str, Any]:
    """The first panel of that kind, with its options or fields replaced."""
    found = (one for board in boards().values() for one in board["panels"] if one["type"] == kind)
    return {**next(found), **changed}


def fields(*properties: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    overrides = [{"matcher": {"id": "byName"}, "properties": [*properties]}] if properties else []
    return {"defaults": defaults, "overrides": overrides}


def board(**changed: Any) -> list[str]:
    (one, *_) = boards().values()
    return [f"export const board_{'_'.join(changed)}: Board = {json.dumps(one | changed)};"]


PANELS = [
    (panel("stat", options={"colorMode": "pink"}), "pink"),
    (panel("timeseries", fieldConfig=fields(custom={"lineWidth": "1"})), NO_NUMBER),
    (panel("timeseries", fieldConfig=fields(custom={"lineWidht": 1})), "lineWidht"),
    (panel("timeseries", fieldConfig=fields(custom={"showPoints": "seldom"})), "seldom"),
    (panel("timeseries", fieldConfig=fields(units="s")), "units"),
    (panel("heatmap", fieldConfig=fields(custom={"lineWidth": 1})), "lineWidth"),
    (panel("stat", fieldConfig=fields(custom={"lineWidth": 1})), "lineWidth"),
    (panel("table", fieldConfig=fields({"id": "custom.width", "value": "9"})), NO_NUMBER),
    (panel("table", fieldConfig=fields({"id": "custom.min", "value": 9})), "custom.min"),
]
WRONG = [
    (board(graphTooltip="no number"), NO_NUMBER),
    (board(panel=[]), "'\"panel\"' does not exist"),
    *((of_panel(f"panel{number}", one), said) for number, (one, said) in enumerate(PANELS)),
]
"""Statements with one mistake, and words of the error about it."""


@pytest.mark.slow
def test_the_check_finds_what_is_wrong(compiler: Path) -> None:
    """All cases at once: the compiler takes a second to begin."""
    lines = [(line, number) for number, (source, _) in enumerate(WRONG) for line in source]
    found = [""] * len(WRONG)
    number = 0
    for text in check(compiler, "\n".join(line for line, _ in lines)).splitlines():
        # An error about a line; the lines that belong to it are indented.
        if place := re.match(r".*check\.ts\((\d+),", text):
            _, number = lines[int(place[1]) - 1 - _HEAD.count("\n")]
        found[number] += f"{text}\n"
    for errors, (source, said) in zip(found, WRONG, strict=True):
        assert said in errors, source
