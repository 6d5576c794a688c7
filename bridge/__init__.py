"""Second floor: what stands between a script and a tool. Every call is a stranger's request."""
