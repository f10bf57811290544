"""Values in JSON, Avro and Protobuf: decoders, encoders, framing and schema registries."""
