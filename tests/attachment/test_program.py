"""A program's name, from its command line."""

from __future__ import annotations

import pytest

from opscope.attachment.program import (
    identify,
    launch_notes,
    resource_notes,
    service_name,
    service_version,
)


@pytest.mark.parametrize(
    ("orig_argv", "argv", "name"),
    [
        (["python", "/srv/train.py", "-m", "x"], ["/srv/train.py", "-m", "x"], "train.py"),
        (["python", "-u", "-W", "error", "train.py"], ["train.py"], "train.py"),
        (["python", "-Xdev", "-Wd", "train.py"], ["train.py"], "train.py"),
        (["python", "--check-hash-based-pycs", "never", "a.py"], ["a.py"], "a.py"),
        (["python", "-m", "pkg.mod"], ["/lib/pkg/mod.py"], "-m pkg.mod"),
        (["python", "-mpkg"], ["/lib/pkg/__main__.py"], "-m pkg"),
        (["python", "-Im", "pkg"], ["-m"], "-m pkg"),
        (["python", "-c", "pass"], ["-c"], "-c"),
        (["python", "-Ecpass", "x"], ["-c", "x"], "-c"),
        (["python"], [""], "python"),
        (["python", "-"], ["-"], "python"),
        (["python", "/srv/app/__main__.py"], ["/srv/app/__main__.py"], "app"),
        (["python", "/srv/app/"], ["/srv/app/"], "app"),
        ([], [], "python"),
        # Launchers that have replaced themselves by their program.
        (["python", "-m", "cProfile", "train.py"], ["train.py"], "train.py"),
        (["python", "-c", "from multiprocessing.spawn import ..."], ["/srv/train.py"], "train.py"),
    ],
)
def test_the_name_is_what_people_call_the_program(
    orig_argv: list[str], argv: list[str], name: str
) -> None:
    assert identify(orig_argv, argv)[0] == name


def test_the_aliases_hold_path_basename_and_the_name_without_suffix() -> None:
    aliases = identify(["python", "/srv/train.py"], ["/srv/train.py"])[1]
    assert set(aliases) == {"/srv/train.py", "train.py", "train"}


def test_a_launcher_stays_among_the_aliases() -> None:
    assert "cProfile" in identify(["python", "-m", "cProfile", "a.py"], ["a.py"])[1]


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, ""),
        ({"OTEL_SERVICE_NAME": "web"}, "web"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "a=b,service.name=ranker"}, "ranker"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=a%20b"}, "a b"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name"}, ""),
        ({"OTEL_SERVICE_NAME": "web", "OTEL_RESOURCE_ATTRIBUTES": "service.name=x"}, "web"),
    ],
)
def test_the_service_is_named_as_opentelemetry_says(environ: dict[str, str], name: str) -> None:
    assert service_name(environ) == name


@pytest.mark.parametrize(
    ("environ", "version"),
    [
        ({}, ""),
        ({"OTEL_SERVICE_NAME": "web"}, ""),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=a, service.version=1.2%2B3"}, "1.2+3"),
    ],
)
def test_the_version_of_the_service_is_a_resource_attribute(
    environ: dict[str, str], version: str
) -> None:
    assert service_version(environ) == version


def test_resource_attributes_are_notes_beside_name_and_version() -> None:
    given = "service.name=a,service.version=2,k8s.pod.name=p%2C1, container.id = c ,=x,empty=,y"
    assert resource_notes({"OTEL_RESOURCE_ATTRIBUTES": given}) == {
        "resource.container.id": "c",
        "resource.k8s.pod.name": "p,1",
    }
    assert resource_notes({}) == {}
    many = ",".join(f"k{n:02}=v" for n in range(40))
    assert len(resource_notes({"OTEL_RESOURCE_ATTRIBUTES": many})) == 16


@pytest.mark.parametrize(
    ("environ", "notes"),
    [
        ({}, {}),
        (
            {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "none"},
            {"rank": "3", "local_rank": "1", "world_size": "8"},
        ),
        (
            {"SLURM_JOB_ID": "77", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "2"},
            {"rank": "0", "local_rank": "0", "world_size": "2", "job.id": "77"},
        ),
        (
            {"RANK": "5", "SLURM_PROCID": "1", "SLURM_JOB_ID": "7", "TORCHELASTIC_RUN_ID": "x"},
            {"rank": "5", "job.id": "7"},
        ),
        ({"OMPI_COMM_WORLD_RANK": "2", "RANK": ""}, {"rank": "2"}),
    ],
)
def test_launchers_say_rank_and_job(environ: dict[str, str], notes: dict[str, str]) -> None:
    assert launch_notes(environ) == notes
