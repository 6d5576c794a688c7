"""Where tools come from: one file an origin."""
