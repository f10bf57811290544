"""The parts that encoders share: kernels read Arrow columns by address, and write rows of bytes."""
