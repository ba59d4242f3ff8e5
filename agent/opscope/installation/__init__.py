"""Puts opscope where a Python finds it by itself, takes it away again, and says how it stands.

Two ways: a .pth file in an environment's site-packages (path_file.py), for hosts and images that
may be written to; and a payload, one directory with all that an observed process needs
(payload.py), for those that may not. `opscope install`, `uninstall` and `status` are the commands.

Why a .pth file and no sitecustomize.py in site-packages: there can be only one sitecustomize, and
the first on the path has it. Debian's own stands before site-packages, so that ours would never
run; a user's, or that of another agent, would have to make room. A .pth file is in nobody's way,
and holds for `python -I` and `-E` too. In instructions of `python -c pass`: bare 1, a sitecustomize
on PYTHONPATH 1.04, the .pth file 1.08. What then runs is the same (attachment/site/).
"""
