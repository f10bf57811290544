"""The framing of values: the id of the writer's schema, before the payload or in a header."""
