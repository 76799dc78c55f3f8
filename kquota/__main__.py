"""`python -m kquota` is `kquota`."""

from kquota.cli.main import main

if __name__ == "__main__":
    main()
