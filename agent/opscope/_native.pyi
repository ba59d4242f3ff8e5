"""The C library as cffi shows it. What there is stands in native/include/*/*.h."""

from typing import Any

ffi: Any
lib: Any
