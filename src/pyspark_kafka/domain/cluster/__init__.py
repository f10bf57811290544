"""What is known of a cluster and its topics, and what the doctor finds there."""
