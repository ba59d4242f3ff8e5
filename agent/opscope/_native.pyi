"""The C library as cffi shows it; native/include/*/*.h declare its contents."""

from typing import Any

ffi: Any
lib: Any
