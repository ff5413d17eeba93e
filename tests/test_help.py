"""`help()` of every public name is complete where it stands; nothing is told elsewhere."""

import inspect
import re

import pytest

import kbert
import kbert.layers

# Hooks that Keras calls by itself; their arguments are the ones of Keras.
HOOKS = {
    *("build", "compile_from_config", "compute_loss", "compute_metrics", "compute_output_shape"),
    *("from_config", "get_config", "make_predict_function", "make_test_function"),
    *("make_train_function", "predict_step", "test_step", "train_step"),
}
ELSEWHERE = re.compile(
    r"(as (in|of|for|by|given|there)\b|as the task's|as `|as keras'|see (there|above)|those of)",
    re.I,
)
ARGUMENTS_ELSEWHERE = re.compile(r"arguments? (is|are) (that|those) of|arguments as in", re.I)
PUBLIC = [
    (f"{room.__name__}.{name}", getattr(room, name))
    for room in (kbert, kbert.layers)
    for name in room.__all__
    if name != "__version__"
]


def functions_of(value):
    """A function, or the public methods and properties of a class that kbert itself defines."""
    if not inspect.isclass(value):
        return [(value.__name__, value)]
    found = {}
    for owner in value.__mro__:
        if not owner.__module__.startswith("kbert."):
            continue
        for name, member in vars(owner).items():
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(member):
                found.setdefault(name, member)
    return list(found.items())


def sections_of(text):
    """Section -> its entries as name -> text; the beginning is the section ""."""
    parts = re.split(r"^(Args|Returns|Raises|Attributes):\n", text, flags=re.M)
    sections = {"": {"": parts[0].strip()}}
    for title, body in zip(parts[1::2], parts[2::2]):
        entries = re.findall(r"^ {4}(?:(\S+): )?(.*(?:\n {5,}.*)*)", body, flags=re.M)
        sections[title] = {name or entry: entry for name, entry in entries}
    return sections


def faults_of(text, parameters):
    """What a docstring lacks for these parameters: an entry each, or a place in its summary."""
    sections = sections_of(text)
    told = {*sections.get("Args", {}), *re.findall(r"`(\*{0,2}\w+)`", sections[""][""])}
    faults = [name for name in parameters if name not in told]
    if ARGUMENTS_ELSEWHERE.search(text):
        faults.append(ARGUMENTS_ELSEWHERE.search(text)[0])
    for title, entries in sections.items():
        faults += [f"{title} {n}: {e}" for n, e in entries.items() if ELSEWHERE.match(e)]
    return faults


def parameters_of(function):
    """The names of what a function takes, with the stars of the docstring."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    given = inspect.signature(function).parameters.values()
    return [stars.get(p.kind, "") + p.name for p in given if p.name not in ("self", "cls")]


@pytest.mark.parametrize("name, value", PUBLIC, ids=[name for name, _ in PUBLIC])
def test_help_is_complete(name, value):
    faults = {}
    if inspect.isclass(value):
        own = [p for p in parameters_of(value.__init__) if p not in ("*args", "**kwargs")]
        faults[name] = faults_of(inspect.getdoc(value), own)
    for method, function in functions_of(value):
        parameters = [] if method in HOOKS else parameters_of(function)
        where = f"{function.__module__}.{function.__qualname__}"
        faults[where] = faults_of(inspect.getdoc(function) or "", parameters)
    assert not {where: found for where, found in faults.items() if found}


def test_what_is_refused():
    """One planted fault each, beside a lawful docstring."""
    good = "Makes it.\n\nArgs:\n    a: how it\n        is.\n    **b: the rest.\n\nReturns:\n    It"
    assert faults_of(good, ["a", "**b"]) == []
    assert faults_of(good, ["a", "c"]) == ["c"]
    assert faults_of("Makes `a` of `*b`, as `fit` does.", ["a", "*b"]) == []
    assert faults_of("As `fit`, twice.", []) == [" : As `fit`, twice."]
    assert faults_of("Makes it.\n\nArgs:\n    a: as in `fit`.", ["a"]) == ["Args a: as in `fit`."]
    assert faults_of("Makes it.\n\nArgs:\n    a: see above.", ["a"]) == ["Args a: see above."]
    assert faults_of("Makes it.\n\nReturns:\n    As there.", []) == ["Returns As there.: As there."]
    assert faults_of("Makes it; its arguments are those of `a`.", []) == ["arguments are those of"]
