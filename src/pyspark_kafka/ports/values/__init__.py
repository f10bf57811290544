"""Typed values: formats, their decoders and encoders, and schema registries."""
