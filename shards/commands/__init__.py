"""The basis of all commands: options as flags, the parser, the table of commands, their output."""
