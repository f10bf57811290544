"""The programs that are compared: one for each tool, as its users write it."""
