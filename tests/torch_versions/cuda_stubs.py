"""Libraries in place of CUDA's, so that a PyTorch built for CUDA can be imported without them.

The import of such a PyTorch calls some of CUDA's functions and some of libtorch_cuda's. These
answers let 13 releases from 2.4.1 to 2.15.0 be imported, train and profile on a machine without a
GPU:

- CUDA's own functions, in C, return 100: there is no device.
- Functions of libtorch_cuda return the address of 64 KiB of zeros, aligned to 64 KiB. Its lowest
  byte is 0, so a bool is false; a reference can be read and written.
- Constructors set the object's table of virtual functions, which all do the same. The options of
  NCCL's process group are made and destroyed at the import, so that one is zeroed as well.
- Types (`_ZTI`) are real ones without a base, since pybind11 compares and casts with them.

All of that is in one library, in place of libtorch_cuda. The other libraries are empty: the loader
looks for a symbol in all of them, and does not check versions in a library that has none.
"""

import ctypes
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.torch_versions import dynamic_symbols

FOREIGN = ("libtorch_cuda", "libtorch_nvshmem", "libcu", "libnv", "libnccl")
"""How the names of libraries begin that are replaced. libcudart, libcublas, libnvrtc, ..."""

_HEAD = """\
#include <malloc.h>
#include <string.h>

enum { BYTES = 65536, NO_DEVICE = 100, FUNCTIONS = 64 };
static char zeros[BYTES] __attribute__((aligned(BYTES)));
extern void *class_type[] __asm__("_ZTVN10__cxxabiv117__class_type_infoE");
struct type { void **functions; const char *name; };
struct virtual { long to_top; struct type *type; void *(*functions[FUNCTIONS])(void); };

static void *nothing(void) { return zeros; }
static struct type unknown = {&class_type[2], "6opaque"};
static struct virtual opaque = {0, &unknown, {[0 ... FUNCTIONS - 1] = nothing}};

"""


def make_stubs(libraries: Iterable[Path], folder: Path) -> list[str]:
    """Puts what `libraries` miss of CUDA into `folder`; gives the names of the new libraries."""
    libraries = list(libraries)
    own = {library.name for library in libraries}
    wanted = dynamic_symbols.needed(libraries) - own
    foreign = sorted(name for name in wanted if name.startswith(FOREIGN))
    if not foreign:
        return []
    for name in sorted(wanted.difference(foreign)):
        ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
    missing = dynamic_symbols.undefined(libraries) - dynamic_symbols.defined(libraries)
    process = ctypes.CDLL(None)  # Python, and what was loaded just now
    symbols = sorted(name for name in missing if not hasattr(process, name))
    for name in foreign:
        source = stub_source(symbols) if name == "libtorch_cuda.so" else ""
        _compile(source, name, folder / name)
    return foreign


def stub_source(symbols: Iterable[str]) -> str:
    """C that defines all of them."""
    symbols = list(symbols)
    types = [name for name in symbols if name.startswith("_ZTI")]
    tables = [name for name in symbols if name.startswith("_ZTV")]
    functions = [name for name in symbols if name not in {*types, *tables}]
    return _HEAD + "".join(
        [
            *(f'struct type {name} = {{&class_type[2], "{name[4:]}"}};\n' for name in types),
            *(_table(name, types) for name in tables),
            *(_function(name, tables) for name in functions),
        ]
    )


def _table(name: str, types: list[str]) -> str:
    of = "_ZTI" + name[4:]
    head = f"0, &{of if of in types else 'unknown'}"
    return f"struct virtual {name} = {{{head}, {{[0 ... FUNCTIONS - 1] = nothing}}}};\n"


def _function(name: str, tables: list[str]) -> str:
    if not name.startswith("_Z"):
        return f"int {name}(void) {{ return NO_DEVICE; }}\n"
    constructed = _constructed(name)
    if not constructed:
        return f"void *{name}(void) {{ return zeros; }}\n"
    table = f"_ZTVN{constructed}E"
    zero = "memset(self, 0, malloc_usable_size(self)); " if constructed.endswith("7Options") else ""
    functions = f"{table if table in tables else 'opaque'}.functions"
    return f"void *{name}(void **self) {{ {zero}*self = {functions}; return self; }}\n"


def _constructed(name: str) -> str:
    """Of a constructor, the class in the form that its other symbols have; empty for others."""
    for constructor in ("C1E", "C2E"):
        scope, found, _ = name.removeprefix("_ZN").partition(constructor)
        if found and name.startswith("_ZN") and scope[-1:].isalpha():
            return scope
    return ""


def _compile(source: str, name: str, library: Path) -> None:
    flags = ["-shared", "-fPIC", "-w", f"-Wl,-soname,{name}"]
    command = ["cc", *flags, "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=source, text=True, check=True)
