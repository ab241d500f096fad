"""`python -m onlinecal` is the console script."""

from onlinecal.cli import main

if __name__ == "__main__":
    main()
