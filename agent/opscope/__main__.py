"""`python -m opscope`: the command `opscope`, where its script is not on the PATH."""

from opscope.cli import main

main()
