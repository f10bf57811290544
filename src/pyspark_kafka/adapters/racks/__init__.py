"""Where the rack of a host is found."""
