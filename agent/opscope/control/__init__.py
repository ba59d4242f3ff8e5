"""Control observed processes from outside: settings, rules for later processes, traces."""
