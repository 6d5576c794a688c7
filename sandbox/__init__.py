"""Third floor: where a script runs. Backends, limits, and the executor where all floors meet."""
