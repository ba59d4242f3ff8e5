"""The import hook sees an import once, and changes nothing else."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import threading
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from opscope.attachment.site.sitecustomize import ImportHook

NAME = "framework_of_this_test"

Install = Callable[..., ImportHook]


@pytest.fixture
def seen() -> list[str]:
    return []


@pytest.fixture
def framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / NAME
    package.mkdir()
    (package / "__init__.py").write_text("value = 1\n")
    (package / "late.py").write_text("value = 2\n")
    yield package
    for module in [m for m in sys.modules if m.partition(".")[0] == NAME]:
        del sys.modules[module]


@pytest.fixture
def install(framework: Path, seen: list[str]) -> Iterator[Install]:
    hooks = []

    def make(names: Sequence[str] = (NAME,), then: Sequence[str] = ()) -> ImportHook:
        def arriving(name: str) -> None:
            assert not hasattr(sys.modules[name], "value")

        def arrived(name: str) -> Sequence[str]:
            seen.append(name)
            assert sys.modules[name].value
            return then if name == NAME else ()

        hooks.append(ImportHook(names, arriving, arrived))
        hooks[-1].install()
        return hooks[-1]

    yield make
    for hook in hooks:
        hook.remove()


def test_an_awaited_import_is_seen_once_when_the_module_is_whole(
    install: Install, seen: list[str]
) -> None:
    hook = install()
    importlib.import_module(NAME)
    assert seen == [NAME]
    assert hook not in sys.meta_path


def test_other_imports_pass_by(install: Install, seen: list[str]) -> None:
    hook = install(("another",))
    importlib.import_module(NAME)
    assert seen == []
    assert hook in sys.meta_path


def test_the_module_is_the_same_as_without_the_hook(install: Install, framework: Path) -> None:
    install()
    module = importlib.import_module(NAME)
    spec = importlib.util.spec_from_file_location(NAME, framework / "__init__.py")
    assert spec is not None and module.__spec__ is not None
    assert module.__loader__ is module.__spec__.loader
    assert type(module.__loader__) is SourceFileLoader
    assert vars(module.__loader__) == vars(spec.loader)
    assert module.__spec__ == spec
    assert set(vars(module)) == set(vars(importlib.util.module_from_spec(spec))) | {
        "__builtins__",
        "value",
    }


def test_a_reload_is_unchanged(install: Install, seen: list[str], framework: Path) -> None:
    install()
    module = importlib.import_module(NAME)
    (framework / "__init__.py").write_text("value = 'new'\n")
    importlib.invalidate_caches()
    assert importlib.reload(module).value == "new"
    assert seen == [NAME]


def test_looking_for_a_module_is_not_importing_it(install: Install, seen: list[str]) -> None:
    hook = install()
    spec = importlib.util.find_spec(NAME)
    assert spec is not None and type(spec.loader) is SourceFileLoader
    assert spec.loader.is_package(NAME)
    assert seen == []
    assert hook in sys.meta_path
    importlib.import_module(NAME)
    assert seen == [NAME]


def test_a_lazy_module_is_seen_when_it_is_loaded(install: Install, seen: list[str]) -> None:
    install()
    spec = importlib.util.find_spec(NAME)
    assert spec is not None and spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    assert seen == []
    assert module.value == 1
    assert seen == [NAME]


def test_a_module_in_a_zip_file_is_seen(
    install: Install, seen: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as archive:
        archive.writestr("zipped_framework.py", "value = 1")
        archive.writestr("zipped_other.py", "value = 1")
    monkeypatch.syspath_prepend(str(tmp_path / "modules.zip"))
    install(("zipped_framework",))
    # One loader serves the whole archive: the other module comes between finding and loading.
    spec = importlib.util.find_spec("zipped_framework")
    importlib.import_module("zipped_other")
    assert seen == []
    module = importlib.import_module("zipped_framework")
    assert seen == ["zipped_framework"]
    assert spec is not None and spec.loader is module.__loader__
    assert pkgutil.get_data("zipped_framework", "zipped_other.py") == b"value = 1"


def test_an_extension_that_names_itself_otherwise_is_seen(
    install: Install, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As numpy.fft._pocketfft_umath of NumPy 2.2 does.
    class Finder:
        def find_spec(self, name: str, path: object = None, target: object = None) -> object:
            return ModuleSpec(name, Loader()) if name == NAME else None  # type: ignore[arg-type]

    class Loader:
        def create_module(self, spec: ModuleSpec) -> ModuleType:
            return ModuleType("_short_name")

        def exec_module(self, module: ModuleType) -> None:
            vars(module)["value"] = 1

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    install()
    assert importlib.import_module(NAME).__name__ == "_short_name"
    assert seen == [NAME]


def test_a_failing_import_fails_unchanged_and_is_awaited_again(
    install: Install, seen: list[str], framework: Path
) -> None:
    install()
    init = framework / "__init__.py"
    init.write_text("raise KeyError('of the framework')\n")
    with pytest.raises(KeyError, match="of the framework"):
        importlib.import_module(NAME)
    assert NAME not in sys.modules
    assert seen == []
    init.write_text("value = 'repaired'\n")
    importlib.invalidate_caches()
    importlib.import_module(NAME)
    assert seen == [NAME]


def test_a_failing_import_shows_no_frame_of_the_hook(install: Install, framework: Path) -> None:
    (framework / "__init__.py").write_text("import no_such_module\n")
    install()
    with pytest.raises(ImportError) as caught:
        importlib.import_module(NAME)
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    # Python 3.10 keeps the traceback of a handled error apart from the error: one line remains.
    remaining = 1 if sys.version_info < (3, 11) else 0
    assert len([file for file in files if "sitecustomize" in file]) == remaining


def test_a_missing_module_raises_import_error(install: Install) -> None:
    install(("no_such_framework",))
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("no_such_framework")
    assert caught.value.name == "no_such_framework"


def test_threads_that_import_at_once_are_seen_as_one(install: Install, seen: list[str]) -> None:
    install()
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        importlib.import_module(NAME)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [NAME]


def test_names_that_the_observer_adds_are_awaited_too(install: Install, seen: list[str]) -> None:
    hook = install(then=(f"{NAME}.late",))
    importlib.import_module(NAME)
    assert hook in sys.meta_path
    importlib.import_module(f"{NAME}.late")
    assert seen == [NAME, f"{NAME}.late"]
    assert hook not in sys.meta_path


def test_two_hooks_both_see_the_import(install: Install, seen: list[str]) -> None:
    install()
    install()
    module = importlib.import_module(NAME)
    assert seen == [NAME, NAME]
    assert "exec_module" not in vars(module.__loader__)


def test_finders_before_and_behind_keep_their_say(
    install: Install, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Finder:
        def __init__(self, place: str) -> None:
            self.place = place

        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == NAME:
                asked.append(self.place)

    monkeypatch.setattr(sys, "meta_path", [Finder("behind"), *sys.meta_path])
    install()
    sys.meta_path.insert(0, Finder("before"))
    importlib.import_module(NAME)
    assert asked == ["before", "behind"]
    assert seen == [NAME]


def test_a_builtin_module_is_imported_though_its_loader_cannot_be_hooked(
    install: Install, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "_opcode" if "_opcode" in sys.builtin_module_names else "gc"
    monkeypatch.delitem(sys.modules, name, raising=False)
    install((name,))
    assert importlib.import_module(name).__name__ == name
    assert seen == []
