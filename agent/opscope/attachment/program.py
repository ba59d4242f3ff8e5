"""Identify the program that this interpreter runs: its name, service, job and rank.

Facts: https://docs.python.org/3/using/cmdline.html for the command line, and
https://docs.python.org/3/library/sys.html#sys.orig_argv for sys.orig_argv.
attachment/policy.py decides whether to observe it.
"""

import os
from collections.abc import Mapping, Sequence

RESOURCE_NOTE = "resource."
"""Prefix of the notes of a segment that are resource attributes."""
ATTRIBUTES_LIMIT = 16
JOB_NOTE = "job.id"
RANK_NOTES = ("rank", "local_rank", "world_size")

# Launchers' variables; the first one set wins: torchrun and compatible ones, Slurm, Open MPI,
# MPICH. https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES
_LAUNCH_VARIABLES = {
    "rank": ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"),
    "local_rank": ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "world_size": ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    JOB_NOTE: ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID"),
}
# These attributes have notes of their own.
_NOT_ATTRIBUTES = ("service.name", "service.version")
_KEY_LIMIT = 64

# One-letter options with a value; -c and -m have one too, and end the interpreter's options.
_WITH_VALUE = "WX"
_LONG_WITH_VALUE = ("--check-hash-based-pycs",)


def identify(orig_argv: Sequence[str], argv: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The program's name and its aliases, from `sys.orig_argv` and `sys.argv`.

    The name is for display: the basename of the script, `-m module`, `-c`, or `python`. The aliases
    are all names that a deny list or a glob may use: path, module, basename with and without .py.
    A launcher (multiprocessing's spawn, joblib, `-m cProfile script.py`) puts the program that it
    runs into `sys.argv[0]`; the name is then that program's, and the launcher is an alias.
    """
    kind, launched = _launched(orig_argv)
    current = argv[0] if argv else ""
    if kind == "m" and (current in ("", "-m") or _is_file_of(current, launched)):
        return f"-m {launched}", _aliases(launched, current)
    if kind == "c" and current in ("", "-c"):
        return "-c", ("-c",)
    path = current or launched
    if path in ("", "-"):
        return "python", ("python",)
    return _basename(path), _aliases(path, launched if kind != "c" else "")


def service_name(environ: Mapping[str, str]) -> str:
    """The service's name from OpenTelemetry's variables, or "".

    Fact: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/;
    OTEL_SERVICE_NAME wins over OTEL_RESOURCE_ATTRIBUTES, which is percent-encoded.
    """
    return environ.get("OTEL_SERVICE_NAME", "").strip() or _resource(environ, "service.name")


def service_version(environ: Mapping[str, str]) -> str:
    """The service's version from OTEL_RESOURCE_ATTRIBUTES, or ""."""
    return _resource(environ, "service.version")


def resource_notes(environ: Mapping[str, str]) -> dict[str, str]:
    """Notes of the other attributes in OTEL_RESOURCE_ATTRIBUTES, up to a limit."""
    found = {
        RESOURCE_NOTE + key: value
        for key, value in _attributes(environ).items()
        if value and len(key) <= _KEY_LIMIT and key not in _NOT_ATTRIBUTES
    }
    return dict(sorted(found.items())[:ATTRIBUTES_LIMIT])


def launch_notes(environ: Mapping[str, str]) -> dict[str, str]:
    """Notes of this process's rank and job, from the variables of launchers."""
    found = {}
    for note, variables in _LAUNCH_VARIABLES.items():
        for variable in variables:
            # torchrun names a job without an id "none".
            if environ.get(variable, "none") not in ("", "none"):
                found[note] = environ[variable]
                break
    return found


def _resource(environ: Mapping[str, str], attribute: str) -> str:
    return _attributes(environ).get(attribute, "")


def _attributes(environ: Mapping[str, str]) -> dict[str, str]:
    given = environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    found = {}
    for pair in given.split(",") if given else ():
        key, equals, value = pair.partition("=")
        if equals and key.strip():
            found[key.strip()] = value.strip()
    if "%" in given:
        from urllib.parse import unquote

        found = {key: unquote(value) for key, value in found.items()}
    return found


def _launched(orig_argv: Sequence[str]) -> tuple[str, str]:
    rest = iter(orig_argv[1:])
    for word in rest:
        if not word.startswith("-") or word == "-":
            return "script", word
        if word in _LONG_WITH_VALUE:
            next(rest, None)
        if word.startswith("--"):
            continue
        for index, letter in enumerate(word[1:], start=2):
            if letter in "cm":
                return letter, word[index:] or next(rest, "")
            if letter in _WITH_VALUE:
                if not word[index:]:
                    next(rest, None)
                break
    return "script", ""


def _is_file_of(path: str, module: str) -> bool:
    stem = module.replace(".", os.sep)
    return path.endswith((f"{stem}.py", f"{stem}.pyc", os.path.join(stem, "__main__.py")))


def _aliases(*names: str) -> tuple[str, ...]:
    found = []
    for name in names:
        if name:
            found += [name, _basename(name), _basename(name).removesuffix(".py")]
    return tuple(dict.fromkeys(found))


def _basename(path: str) -> str:
    directory, name = os.path.split(path.rstrip(os.sep))
    return os.path.basename(directory) if name == "__main__.py" and directory else name
