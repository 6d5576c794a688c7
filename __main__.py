"""`python -m limbeck` is the command line."""

from .serve.cli import main

if __name__ == "__main__":
    main()
