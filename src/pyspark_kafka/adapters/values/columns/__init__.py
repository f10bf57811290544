"""Growing Arrow columns of any type, which kernels fill."""
