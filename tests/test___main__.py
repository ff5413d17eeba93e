"""`python -m kbert` is the program; tests/cli/test_main.py runs it."""

import kbert.__main__
from kbert.cli.main import main


def test_it_is_the_program():
    assert kbert.__main__.main is main
