"""Programs that print ratios against the JVM connector, measured in one run."""
