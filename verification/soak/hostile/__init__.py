"""Faults of networks, brokers, clusters and storages, under queries that outlive them."""
