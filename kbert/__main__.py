"""`python -m kbert`: the program, also where the scripts of an environment are not on the path."""

from kbert.cli.main import main

if __name__ == "__main__":
    main()
