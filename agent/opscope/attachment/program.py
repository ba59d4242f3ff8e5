"""What to call the program that this interpreter runs, and the service that it is part of.

Facts: https://docs.python.org/3/using/cmdline.html for the command line, and
https://docs.python.org/3/library/sys.html#sys.orig_argv for where it is kept. Not here: whether
the program is to be observed (attachment/policy.py).
"""

import os
from collections.abc import Mapping, Sequence

# Options of one letter that take a value; -c and -m do too, and end the interpreter's options.
_WITH_VALUE = "WX"
_LONG_WITH_VALUE = ("--check-hash-based-pycs",)


def identify(orig_argv: Sequence[str], argv: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The program's name and its aliases, from `sys.orig_argv` and `sys.argv`.

    The name is for people: the basename of the script, `-m module`, `-c`, or `python`. The aliases
    are all that a deny list or a glob may mean it by: path, module, basename with and without .py.
    A launcher (multiprocessing's spawn, joblib, `-m cProfile script.py`) puts the program it runs
    into `sys.argv[0]`; that one is then the program, but the launcher stays among the aliases.
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
    """The service's name as OpenTelemetry's variables give it, or "".

    Fact: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/;
    OTEL_SERVICE_NAME wins over OTEL_RESOURCE_ATTRIBUTES, which is percent-encoded.
    """
    return environ.get("OTEL_SERVICE_NAME", "").strip() or _resource(environ, "service.name")


def service_version(environ: Mapping[str, str]) -> str:
    """The service's version as OTEL_RESOURCE_ATTRIBUTES gives it, or ""."""
    return _resource(environ, "service.version")


def _resource(environ: Mapping[str, str], attribute: str) -> str:
    found = ""
    for pair in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, _, value = pair.partition("=")
        if key.strip() == attribute:
            found = value.strip()
    if "%" in found:
        from urllib.parse import unquote

        found = unquote(found)
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
