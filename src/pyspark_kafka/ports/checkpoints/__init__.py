"""What checkpoints need of a storage."""
