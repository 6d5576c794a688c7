"""One file a command of `limbeck`, imported when the command is called."""
