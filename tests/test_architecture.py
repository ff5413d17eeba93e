"""The house is as its plan says: floors, sizes, names and constructs (docs/architecture.md)."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import house_rules as rules
from tests.house_rules import House, Violation

Rule = Callable[[House], list[Violation]]

RULES: tuple[Rule, ...] = (
    rules.unknown_rooms,
    rules.upward_imports,
    rules.upward_imports_within_rooms,
    rules.imports_of_rooms_apart,
    rules.tensorflow_imports,
    rules.import_cycles,
    rules.heavy_imports_at_the_top,
    rules.imports_inside_functions,
    rules.private_keras_imports,
    rules.imports_of_scripts,
    rules.questions_of_kind,
    rules.imports_of_architectures,
    rules.long_files,
    rules.deep_models,
    rules.crowded_folders,
    rules.long_functions,
    rules.long_constructors,
    rules.banned_names,
    rules.unknown_top_level_entries,
    rules.machine_paths,
    rules.folders_missing_in_the_plan,
    rules.asserts,
    rules.bare_excepts,
    rules.prints,
    rules.unregistered_classes,
    rules.missing_annotations,
    rules.missing_docstrings,
    rules.odd_language,
    rules.missing_tests,
    rules.homeless_tests,
)

# (rule, where) -> the reason. A reason that is no longer needed makes its test fail.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("tensorflow_imports", "kbert/checkpoints/tensorflow/variables.py::import_tensorflow"): (
        "the readers of TensorFlow's own formats cannot do without it; loaded when one is read"
    ),
    ("tensorflow_imports", "kbert/optimization/losses.py::tensorflow"): (
        "a fused update and sums over replicas, only where the running backend is TensorFlow"
    ),
    ("tensorflow_imports", "kbert/gradients.py::_table"): (
        "TensorFlow's table of gradients keeps graphs for ever; only where TensorFlow runs"
    ),
    ("tensorflow_imports", "kbert/__main__.py"): "it is the program, run as a module",
    ("tensorflow_imports", "kbert/layers/embeddings.py::looked_up"): (
        "Keras' look-up costs six steps of a TensorFlow graph in place of one, dozens of times"
    ),
    ("tensorflow_imports", "kbert/decoding/active_rows.py::_tensorflow"): (
        "a gather within rows, one node for twenty at every step, only where TensorFlow runs"
    ),
    **{
        (rule, f"kbert/pipelines/task_model.py::{method}"): (
            "only a model on raw texts has a tokenizer to load or save, and needs TensorFlow anyway"
        )
        for rule in ("tensorflow_imports", "imports_inside_functions")
        for method in ("from_pretrained", "save_pretrained")
    },
}


def tracked_paths(root: Path) -> tuple[str, ...]:
    """The paths that git tracks; outside a checkout there is nothing to judge."""
    if not (root / ".git").exists():
        pytest.skip(f"{root} is no checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    )
    return tuple(path for path in listed.stdout.split("\0") if path)


@pytest.fixture(scope="module")
def house(repository: Path) -> House:
    return House(repository, tracked_paths(repository))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_the_rule(rule: Rule, house: House):
    found = rule(house)
    excused = {where for name, where in EXCEPTIONS if name == rule.__name__}
    broken = [str(v) for v in found if v.where not in excused]
    unused = sorted(excused - {v.where for v in found})
    assert not broken, f"{rule.__doc__}\n" + "\n".join(broken)
    assert not unused, f"exceptions that are no longer needed: {unused}"


def test_every_exception_names_a_rule_and_has_a_reason():
    names = {rule.__name__ for rule in RULES}
    for (name, _), reason in EXCEPTIONS.items():
        assert name in names
        assert len(reason.split()) > 3


def test_every_rule_is_applied():
    written = {
        name
        for name, value in vars(rules).items()
        if callable(value) and getattr(value, "__annotations__", {}).get("house") is House
    }
    assert written == {rule.__name__ for rule in RULES}


# --- the rules can fail: one planted violation each, beside its lawful neighbour ----------------


def plant(root: Path, files: dict[str, str]) -> House:
    """A small house with these files; a docstring is added to modules that have none."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return House(root, tuple(files))


def long_text(lines: int) -> str:
    return "x = 1\n" * lines


REGISTERED = "@keras.saving.register_keras_serializable('kbert')"
LAYER = f"import keras\n{REGISTERED}\nclass A(keras.layers.Layer):"
MODEL = "(keras.Model):\n    def __init__"
ELEVEN = ", ".join(f"a{i}" for i in range(11))
TEN = ", ".join(f"a{i}" for i in range(10))
SEVENTEEN = ", ".join(f"a{i}" for i in range(17))

# rule, files, the expected "where" of each violation, a part of the first message
PLANTED = [
    (
        rules.unknown_rooms,
        {
            "kbert/text/a.py": "",
            "kbert/text/wordpiece/a.py": "",
            "kbert/text/kitchen/a.py": "",
            "kbert/kitchen/a.py": "",
            "kbert/serving/a.py": "",
        },
        ["kbert/kitchen/a.py", "kbert/serving/a.py", "kbert/text/kitchen/a.py"],
        "'kitchen' has no floor",
    ),
    (
        rules.upward_imports_within_rooms,
        {
            "kbert/text/a.py": "from kbert.text.wordpiece.b import c",
            "kbert/text/wordpiece/b.py": "from kbert.text.sequences import a",
            "kbert/text/wordpiece/d.py": "from kbert.text.wordpiece import b\nimport kbert.text.a",
            "kbert/text/sequences/a.py": "from kbert.text.wordpiece.b import c",
            "kbert/data/questions/c.py": "def f():\n    from kbert.data.entities.b import x",
            "kbert/data/entities/b.py": "",
        },
        ["kbert/text/a.py", "kbert/text/wordpiece/b.py", "kbert/data/questions/c.py"],
        "text/wordpiece must not import kbert.text.sequences.a",
    ),
    (
        rules.crowded_folders,
        {
            **{f"kbert/text/a{i}.py": "" for i in range(12)},
            **{f"kbert/text/wordpiece/a{i}.py": "" for i in range(13)},
            "kbert/text/__init__.py": "",
        },
        ["kbert/text/wordpiece"],
        "13 files, at most 12 are allowed",
    ),
    (
        rules.upward_imports,
        {
            "kbert/layers/a.py": "from kbert.models.bert import Bert",
            "kbert/layers/b.py": "from kbert.text import vocabulary",
            "kbert/layers/c.py": "def f():\n    import kbert.tasks.a",
            "kbert/storage/d.py": "from ..text import vocabulary",
            "kbert/layers/e.py": "from kbert import Bert",
            "kbert/models/good.py": "from kbert.layers import a\nfrom kbert import __version__",
            "kbert/layers/good.py": "from kbert.storage.a import x\nfrom . import a",
        },
        [f"kbert/layers/{x}.py" for x in "abce"] + ["kbert/storage/d.py"],
        "layers (floor 0) must not import kbert.models.bert.Bert (floor 1)",
    ),
    (
        rules.imports_of_rooms_apart,
        {
            "kbert/cli/commands/predict.py": "def f():\n    from kbert.cli.actions import a",
            "kbert/cli/actions/a.py": "import kbert.local_server.b",
            "kbert/local_server/b.py": "import kbert.training.good",
            "kbert/launch/c.py": "from kbert.cli.actions import a",
            "kbert/cli/commands/serve.py": "def f():\n    import kbert.local_server.b",
            "kbert/training/good.py": "import json",
        },
        ["kbert/cli/commands/predict.py", "kbert/launch/c.py"],
        "reaches kbert.local_server.b, of a room that stands apart",
    ),
    (
        rules.tensorflow_imports,
        {
            "kbert/layers/a.py": "import tensorflow as tf",
            "kbert/models/b.py": "def f():\n    from tensorflow.io import gfile",
            "kbert/tasks/ner/head.py": "from kbert.text import good",
            "kbert/tasks/ner/model.py": "from kbert.text import good\nimport kbert.tasks.ner.head",
            "kbert/tasks/regression/head.py": "import kbert.layers.a",
            "kbert/text/good.py": "import tensorflow as tf",
        },
        ["kbert/layers/a.py", "kbert/models/b.py::f", "kbert/tasks/ner/head.py"],
        "line 1: must work without TensorFlow; it imports tensorflow",
    ),
    (
        rules.import_cycles,
        {
            "kbert/text/a.py": "from kbert.text.b import x",
            "kbert/text/b.py": "def f():\n    from kbert.text import c",
            "kbert/text/c.py": "import kbert.text.a",
            "kbert/text/good.py": "from kbert.text import a",
        },
        ["kbert/text/a.py"],
        "kbert.text.a -> kbert.text.b -> kbert.text.c -> kbert.text.a",
    ),
    (
        rules.heavy_imports_at_the_top,
        {
            "kbert/text/a.py": "import torch.nn",
            "kbert/text/b.py": "try:\n    from official import x\nexcept ImportError:\n    x = 1",
            "kbert/text/good.py": "def f():\n    import torch",
        },
        ["kbert/text/a.py", "kbert/text/b.py"],
        "torch must be imported where it is used",
    ),
    (
        rules.imports_inside_functions,
        {
            "kbert/text/a.py": "def f():\n    import json",
            "kbert/text/b.py": "class A:\n    def f(self):\n        from kbert.text import a",
            "kbert/cli/good.py": "def f():\n    from kbert.text import a\n    import sklearn",
        },
        ["kbert/text/a.py::f", "kbert/text/b.py::f"],
        "the import of json must stand at the top",
    ),
    (
        rules.private_keras_imports,
        {"kbert/layers/a.py": "from keras.src import ops", "kbert/layers/b.py": "import keras"},
        ["kbert/layers/a.py"],
        "keras.src.ops is private to Keras",
    ),
    (
        rules.imports_of_scripts,
        {"kbert/text/a.py": "import benchmarks.b", "export/c.py": "from tpu import d"},
        ["kbert/text/a.py", "export/c.py"],
        "nothing may import the scripts of benchmarks/",
    ),
    (
        rules.questions_of_kind,
        {
            "kbert/serving/a.py": "def f(model):\n    return hasattr(model, 'stride')",
            "kbert/training/b.py": "def f(x):\n    return isinstance(x, RunConfig | TextExamples)",
            "kbert/training/good.py": "def f(x):\n    return isinstance(x, str) or hasattr(x, 'a')",
            "kbert/tasks/ner/task.py": "def f(x):\n    return isinstance(x, TaggedSentences)",
        },
        ["kbert/serving/a.py", "kbert/training/b.py"],
        "line 2: ask the object of the task instead",
    ),
    (
        rules.imports_of_architectures,
        {
            "kbert/architectures.py": (
                'A = "kbert.models.bert.Bert", "kbert.models.deep.transformer.Transformer"'
            ),
            "kbert/tasks/ner/head.py": "from kbert.models.bert import Bert",
            "kbert/cli/a.py": "def f():\n  from kbert.models.deep.transformer import Transformer",
            "kbert/cli/good.py": "from kbert.models.bert import bert_size",
            "kbert/models/good.py": "from kbert.models.bert import Bert",
            "kbert/__init__.py": "from kbert.models.bert import Bert",
        },
        ["kbert/cli/a.py", "kbert/tasks/ner/head.py"],
        "line 2: take kbert.models.deep.transformer.Transformer through kbert.architectures",
    ),
    (
        rules.long_files,
        {
            "kbert/text/a.py": long_text(301),
            "kbert/text/good.py": long_text(300),
            "tpu/b.py": long_text(121),
            "tpu/good.py": long_text(120),
        },
        ["kbert/text/a.py", "tpu/b.py"],
        "301 lines, at most 300 are allowed",
    ),
    (
        rules.long_files,
        {
            "kbert/text/a.py": "class A:\n" + "    x = 1\n" * 400,
            "kbert/text/b.py": "class B:\n" + "    x = 1\n" * 300 + "def f(): pass\n",
            "kbert/text/good.py": "class C:\n" + "    x = 1\n" * 390,
        },
        ["kbert/text/a.py", "kbert/text/b.py"],
        "401 lines, at most 400 are allowed",
    ),
    (
        rules.deep_models,
        {
            "kbert/models/a.py": "class A(keras.Model): pass\nclass B(A): pass\nclass C(B): pass",
            "kbert/tasks/d.py": "class Mixin: pass\nclass D(C): pass\nclass E(Mixin, B): pass",
        },
        ["kbert/tasks/d.py::D", "kbert/tasks/d.py::E"],
        "4 classes, at most 3 are allowed",
    ),
    (
        rules.long_functions,
        {
            "kbert/text/a.py": "class A:\n  def f(self):\n" + "    x = 1\n" * 60,
            "kbert/text/good.py": "def f():\n" + "    x = 1\n" * 59,
        },
        ["kbert/text/a.py::A.f"],
        "61 lines, at most 60 are allowed",
    ),
    (
        rules.long_constructors,
        {
            "kbert/layers/a.py": f"{LAYER}\n    def __init__(self, {ELEVEN}, name=None): pass",
            "kbert/layers/b.py": f"class B(A):\n    def __init__(self, *, {ELEVEN}): pass",
            "kbert/layers/good.py": f"class G(A):\n    def __init__(self, {TEN}, dtype, **k): pass",
            "kbert/models/c.py": f"class C{MODEL}(self, {SEVENTEEN}): pass",
            "kbert/models/good.py": f"class D{MODEL}(self, {ELEVEN}): pass",
            "kbert/text/good.py": f"class E:\n    def __init__(self, {SEVENTEEN}): pass",
        },
        ["kbert/layers/a.py::A", "kbert/layers/b.py::B", "kbert/models/c.py::C"],
        "11 arguments; a layer may have 10",
    ),
    (
        rules.banned_names,
        {"kbert/text/utils.py": "", "docs/misc/a.md": "", "kbert/text/utility_words.py": ""},
        ["kbert/text/utils.py", "docs/misc/a.md"],
        "name the file after the one concept",
    ),
    (
        rules.unknown_top_level_entries,
        {"setup.py": "", "kbert/a.py": "", "notes/a.md": ""},
        ["notes", "setup.py"],
        "not in the plan",
    ),
    (
        rules.machine_paths,
        {"docs/a.md": "x\nsee " + rules.MACHINE_PATHS[0] + "b", "docs/b.md": "see the network/b"},
        ["docs/a.md"],
        "line 2 mentions",
    ),
    (
        rules.folders_missing_in_the_plan,
        {
            rules.PLAN: "| `text/` | a |\n| `text/gone/` | b |\n",
            "kbert/text/a.py": "",
            "kbert/text/new/b.py": "",
            "kbert/c.py": "",
        },
        ["kbert/text/new/", f"{rules.PLAN}::text/gone/"],
        "has no line in",
    ),
    (
        rules.asserts,
        {"kbert/text/a.py": "def f(x):\n    assert x", "tests/b.py": "assert True"},
        ["kbert/text/a.py"],
        "line 2: raise an error instead of assert",
    ),
    (
        rules.bare_excepts,
        {
            "kbert/text/a.py": "try:\n    x = 1\nexcept:\n    pass",
            "kbert/text/good.py": "try:\n    x = 1\nexcept OSError:\n    pass",
        },
        ["kbert/text/a.py"],
        "line 3: name the exceptions to catch",
    ),
    (
        rules.prints,
        {"kbert/text/a.py": "print(1)", "kbert/cli/a.py": "print(1)", "export/a.py": "print(1)"},
        ["kbert/text/a.py"],
        "only kbert/cli prints",
    ),
    (
        rules.unregistered_classes,
        {
            "kbert/layers/a.py": f"{LAYER}\n    pass\nclass B(A):\n    pass",
            "kbert/layers/b.py": "class D(A):\n    def call(self): ...\nclass E(D):\n    pass",
            "kbert/layers/good.py": "class _Hidden(A):\n    pass\nclass Plain:\n    pass",
            "kbert/models/good.py": f"class F(A):\n    pass\n{REGISTERED}\nclass G(F):\n    pass",
        },
        ["kbert/layers/a.py::B", "kbert/layers/b.py::D", "kbert/layers/b.py::E"],
        "register_keras_serializable",
    ),
    (
        rules.missing_annotations,
        {
            "kbert/text/a.py": "def f(a, *b: int, **c) -> int: ...\ndef g(a: int): ...",
            "kbert/text/b.py": "class A:\n    def f(self, a) -> int: ...",
            "kbert/text/good.py": "def _f(a): ...\nclass A:\n    def f(self, a: int) -> int: ...",
        },
        ["kbert/text/a.py::f", "kbert/text/a.py::g", "kbert/text/b.py::A.f"],
        "without annotation: a, c",
    ),
    (
        rules.missing_docstrings,
        {
            "kbert/text/a.py": "x = 1",
            "kbert/text/b.py": "'''B.'''\nclass A:\n    def f(self): ...",
            "kbert/text/c.py": "'''C.'''\ndef f():\n    '''F.'''\n    def inner(): ...",
            "kbert/text/__init__.py": "",
            "kbert/layers/good.py": "'''D.'''\nclass A:\n '''A.'''\n def get_config(self): ...",
            "kbert/layers/base.py": "'''D.'''\nclass B:\n '''B.'''\n def g(self): '''G.'''",
            "kbert/layers/own.py": "'''D.'''\nclass C(B):\n '''C.'''\n def g(self): ...",
        },
        ["kbert/text/a.py", "kbert/text/b.py::A", "kbert/text/b.py::A.f"],
        "the module has no docstring",
    ),
    (
        rules.odd_language,
        {
            "kbert/text/a.py": "'''What it is.'''",
            "kbert/text/b.py": "'''B.'''\ndef f(x):\n    '''F.\n\n    Args:\n  x: as there.'''",
            "kbert/text/c.py": "'''C.'''\nclass A:\n    '''It begins anew.'''",
            "kbert/text/good.py": "'''Words and what they are.'''",
        },
        ["kbert/text/a.py", "kbert/text/b.py::f", "kbert/text/c.py::A"],
        "say it in the field's terms: 'What '",
    ),
    (
        rules.missing_tests,
        {
            "kbert/text/a.py": "",
            "kbert/text/b.py": "",
            "kbert/text/__init__.py": "",
            "tests/text/test_a.py": "",
        },
        ["kbert/text/b.py"],
        "has no tests/text/test_b.py",
    ),
    (
        rules.homeless_tests,
        {
            "kbert/text/a.py": "",
            "tests/text/test_a.py": "",
            "tests/text/test_a_more.py": "",
            "tests/text/test_b.py": "",
            "tests/text/wordpiece/test_a.py": "",
            "tests/parity/test_c.py": "",
        },
        ["tests/text/test_b.py", "tests/text/wordpiece/test_a.py"],
        "there is no kbert/text/b.py",
    ),
]


PLANTED_NAMES = [planted[0].__name__ for planted in PLANTED]


@pytest.mark.parametrize("rule, files, where, message", PLANTED, ids=PLANTED_NAMES)
def test_a_planted_violation_is_found(
    rule: Rule, files: dict[str, str], where: list[str], message: str, tmp_path: Path
):
    found = rule(plant(tmp_path, files))
    assert sorted(v.where for v in found) == sorted(where)
    assert any(message in v.message for v in found)


def test_every_rule_has_a_planted_violation():
    assert {p[0] for p in PLANTED} == set(RULES)
