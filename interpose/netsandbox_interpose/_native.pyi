# Made by cffi while building; what `lib` has stands between the cdef marks of interpose/src/*.h.
from typing import Any

ffi: Any
lib: Any
