"""Tasks of continuous queries, and the channels between these and their driver."""
