"""Where tokens for logins come from."""
