"""Install opscope into a Python environment so that it starts by itself; uninstall; report status.

There are two ways: a .pth file in an environment's site-packages (path_file.py), for writable hosts
and images; and a payload, one directory with everything that an observed process needs
(payload.py), for read-only ones. The commands are `opscope install`, `uninstall` and `status`.

Why a .pth file and no sitecustomize.py in site-packages: Python runs only the first sitecustomize
on its path. Debian's own precedes site-packages, so ours would never run; and ours would replace a
user's or another agent's. A .pth file conflicts with none, and also works with `python -I` and
`-E`. In instructions of `python -c pass`: bare 1, a sitecustomize on PYTHONPATH 1.04, the .pth file
1.08. Both then run the same code (attachment/site/).
"""
