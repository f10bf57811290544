"""The rules of an idempotent and transactional producer, without I/O."""
