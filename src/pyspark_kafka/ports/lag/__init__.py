"""Where lag and progress are reported."""
