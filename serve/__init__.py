"""The top floor: the doors. Command line, configuration, tool definitions for each SDK."""
