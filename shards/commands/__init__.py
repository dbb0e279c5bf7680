"""What commands are made of: options that are flags, the parser, the table, what they print."""
