"""Ground floor: the one folder that goes into the sandbox. Standard library and grpcio only."""
