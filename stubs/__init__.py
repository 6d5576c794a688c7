"""First floor: what the model sees. Tools, their contracts, the catalog, the stub modules."""
