"""What the use cases need of the outside world: small abstract classes, named for the need."""
