"""The basis of all commands: flags, the parser, the table of commands, and the commands' output."""
