"""Takes the place of the extension module `opscope._tensor` in free-threaded Python.

The extension keeps its objects consistent by the GIL, and loading it would switch the GIL on for
the whole program. So a build for free-threaded Python installs this file instead of it, also for
programs with PYTHON_GIL=1.
"""

raise ImportError("opscope's tensors and model files need the GIL; this Python is free-threaded")
