"""What the operating system and the standard library give."""
