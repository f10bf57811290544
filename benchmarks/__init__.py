"""Programs that print ratios against the peers, measured in one run on one broker."""
