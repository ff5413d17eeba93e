"""Search gives on JAX, in a process that cannot find TensorFlow, what it gives on TensorFlow."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.decoding import reference
from tests.decoding.search_program import FIELDS, MAX_LENGTHS, PROBLEMS, outputs, tables_of
from tests.decoding.searching import END, answers_of, check_answers, check_searches, expected
from tests.decoding.spelling import speaker_of
from tests.jax_process import run_on_jax

pytestmark = [pytest.mark.parity, pytest.mark.slow]

PROGRAM = """
from tests.decoding.search_program import main
main(sys.argv[1])
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, repository: Path):
    """Backend -> problem -> what the search gave."""
    path = tmp_path_factory.mktemp("search") / "jax.npz"
    run_on_jax(PROGRAM, str(path), folder=repository)
    with np.load(path) as arrays:
        jax = dict(arrays)
    assert str(jax.pop("backend")) == "jax"
    return {
        backend: {
            name: SimpleNamespace(**{field: arrays[f"{name}/{field}"] for field in FIELDS})
            for name in (*PROBLEMS, "greedy")
        }
        for backend, arrays in (("jax", jax), ("tensorflow", outputs()))
    }


@pytest.mark.parametrize("name", PROBLEMS)
def test_beam_search_is_the_reference_on_both_backends(found, name):
    options, rows, holes, added = PROBLEMS[name]
    tables, limits = tables_of(holes, added), MAX_LENGTHS[:rows]
    for backend in ("jax", "tensorflow"):
        check_searches(found[backend][name], expected(tables, limits, **options), (backend, name))
    for one, other in zip(*(answers_of(found[backend][name]) for backend in found)):
        check_answers(one, other, name)


def test_greedy_search_is_the_reference_on_both_backends(found):
    searches = [
        reference.greedy(speaker_of(table), end_id=END, max_length=limit)
        for table, limit in zip(tables_of(0.0, 0.0), MAX_LENGTHS)
    ]
    for backend in ("jax", "tensorflow"):
        check_searches(found[backend]["greedy"], searches, backend)
