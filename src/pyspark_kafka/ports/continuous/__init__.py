"""What continuous queries need of a client, and of what runs their tasks."""
