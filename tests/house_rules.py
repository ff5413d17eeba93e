"""The rules of the house as functions over source text, with nothing but the standard library.

Each function takes a `House` and returns the violations that it finds; `test_architecture.py` holds
the project to them and lists the exceptions. Nothing of kbert is imported here.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

# Room -> floor. A module imports from lower floors and from its own room only.
FLOORS = {
    "storage": -1,
    "layers": 0,
    "decoding": 0,
    "optimization": 0,
    "checkpoints": 0,
    "text": 0,
    "images": 0,
    "metrics": 0,
    "plots": 0,
    "models": 1,
    "data": 1,
    "options": 2,
    "pipelines": 2,
    "tasks": 3,
    "training": 4,
    "serving": 4,
    "launch": 5,
    "tpu_check": 5,
    "export_check": 5,
    "local_server": 5,
    "cli": 6,
}
# Room -> its sub-rooms from the lowest floor up, with the same rule; "." are the room's own files.
SUB_FLOORS = {
    "checkpoints": (("arrays",), ("encoders",), ("tensorflow",), (".",), ("adapter_hub",)),
    "text": ((".",), ("wordpiece",), ("byte_level_bpe",), ("sequences",)),
    "layers": ((".",), ("adapters", "convolution", "recurrent")),
    "models": (("adapters",), (".",), ("encoder_decoders",), ("captioning",)),
    "data": (
        ("tables",),
        ("batches",),
        ("features",),
        ("captions", "classification", "entities", "pretraining", "questions"),
        ("samples", "translation"),
        (".",),
    ),
    "tasks": (
        (".",),
        ("captioning", "classification", "embedding", "pretraining"),
        ("question_answering", "translation"),
        ("multi_label", "multi_task", "multiple_choice", "ner", "regression"),
        ("span_tagging",),
    ),
    "training": (
        ("config",),
        ("runs",),
        ("distributed",),
        ("callbacks",),
        ("captioning", "pretraining", "translation"),
        ("recipes",),
        (".",),
    ),
    "serving": (
        ("format",),
        ("precision",),
        ("export",),
        ("loading", "portable"),
        ("batch_prediction", "client"),
    ),
    "cli": (("frame",), ("actions",), ("commands",), (".",)),
}
# Rooms apart, and the modules that work without them, by themselves and by all that they import.
APART = ("launch", "tpu_check", "export_check", "local_server")
PLAIN = (
    "kbert/__init__.py",
    "kbert/cli/commands/predict.py",
    "kbert/cli/commands/train.py",
    "kbert/pipelines/*",
    "kbert/tasks/*",
    "kbert/training/*",
)
# What every room may import from the package itself: names, numbers, and custom gradients.
GROUND = ("__version__", "architectures", "extras", "gradients", "hints", "keras_names")
# What works where TensorFlow is not installed: rooms, and files of others.
KERAS_ONLY = ("storage", "layers", "decoding", "optimization", "checkpoints", "models")
# Objects of tasks, which name their parts.
TASK_FILES = "kbert/tasks/*task.py"
KERAS_ONLY_FILES = (
    "kbert/pipelines/task_model.py",
    "kbert/tasks/*/head.py",
    "kbert/tasks/pretraining/objectives.py",
)
TENSORFLOW_PACKAGES = (
    "official",
    "tensorflow",
    "tensorflow_datasets",
    "tensorflow_hub",
    "tensorflow_text",
    "tf_keras",
)
# Optional or slow to load: imported inside the function that uses them, with an error that names
# what to install. No other package is imported inside a function.
HEAVY_PACKAGES = (
    "ctranslate2",
    "datasets",
    "grpc",
    "grpc_health",
    "huggingface_hub",
    "jax",
    "keras_hub",
    "matplotlib",
    "official",
    "onnx",
    "sacrebleu",
    "sacremoses",
    "scipy",
    "sentencepiece",
    "seqeval",
    "sklearn",
    "tensorflow_datasets",
    "tensorflow_hub",
    "tensorflow_serving",
    "tf_keras",
    "tokenizers",
    "torch",
    "transformers",
)
SCRIPT_FOLDERS = ("export", "tpu", "benchmarks")
BANNED_NAMES = ("util", "utils", "helper", "helpers", "common", "misc", "tools")
TOP_LEVEL_ENTRIES = (
    ".ci",
    ".gitattributes",
    ".gitignore",
    ".mkdocs.yml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "benchmarks",
    "docs",
    "export",
    "kbert",
    "pyproject.toml",
    "setup.cfg",
    "tests",
    "tpu",
)
MAX_FILE_LINES = 300
# Of a file that is one class: a class is not cut in two for the count.
MAX_CLASS_LINES = 400
MAX_FOLDER_FILES = 12
MAX_FUNCTION_LINES = 60
MAX_SCRIPT_LINES = 120
MAX_LAYER_ARGUMENTS = 10
MAX_MODEL_ARGUMENTS = 16
# Classes of kbert in the ancestry of a model, itself included.
MAX_MODEL_CLASSES = 3
LAYER_BASES = ("keras.layers.Layer", "keras.Layer", "layers.Layer")
MODEL_BASES = ("keras.Model", "keras.models.Model", "models.Model")
# Methods whose contract is the one of Keras or Python; their docstrings would repeat it.
KNOWN_CONTRACTS = ("build", "compute_output_shape", "compute_output_spec", "get_config")
# Written in two pieces, so that this file itself does not mention them.
MACHINE_PATHS = ("/" + "work/", "/" + "root/")

# The page that names each folder.
PLAN = "docs/architecture.md"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Violation:
    """A rule broken in a place: `where` is a path, or path::name, as exceptions spell it."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(frozen=True)
class Import:
    """One imported module and where it stands; `function` is "" at the top of the file."""

    module: str
    line: int
    function: str
    for_types: bool

    @property
    def package(self) -> str:
        """The top-level package."""
        return self.module.split(".")[0]


@dataclass(frozen=True)
class Module:
    """One file of source."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text, filename=self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All that the file is made of; many rules look at it."""
        return list(ast.walk(self.tree))

    @property
    def name(self) -> str:
        """kbert/text/sequences/packing.py -> kbert.text.sequences.packing."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def room(self) -> str | None:
        """kbert/text/sequences/packing.py -> text; None for the package itself and for scripts."""
        parts = self.path.split("/")
        return parts[1] if parts[0] == "kbert" and len(parts) > 2 else None

    @property
    def sub_room(self) -> str:
        """kbert/text/sequences/packing.py -> sequences; "." for a room's own file."""
        parts = self.path.split("/")
        return parts[2] if len(parts) > 3 else "."

    @property
    def keras_only(self) -> bool:
        """Whether it must work where TensorFlow is not installed."""
        named = any(fnmatch(self.path, pattern) for pattern in KERAS_ONLY_FILES)
        return self.room in KERAS_ONLY or self.path.count("/") == 1 or named

    def imports(self) -> list[Import]:
        """Every import of the file, in order."""
        return self._every_import

    @cached_property
    def _every_import(self) -> list[Import]:
        return list(self._imports(self.tree, "", False))

    def _imports(self, node: ast.AST, function: str, for_types: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, child.lineno, function, for_types)
            elif isinstance(child, ast.ImportFrom):
                base = self._absolute(child)
                for alias in child.names:
                    module = f"{base}.{alias.name}"
                    yield Import(module, child.lineno, function, for_types)
            elif not isinstance(child, ast.expr):  # in which no import can be
                inside = child.name if isinstance(child, Function) else function
                typing = for_types or is_type_checking(child)
                yield from self._imports(child, inside, typing)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        package = self.name.split(".")
        if not self.path.endswith("__init__.py"):
            package = package[:-1]
        package = package[: len(package) - node.level + 1]
        return ".".join([*package, *([node.module] if node.module else [])])


@dataclass(frozen=True)
class House:
    """A checkout: the modules of kbert, the scripts, and every tracked path."""

    root: Path
    tracked: tuple[str, ...]

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """The files of kbert/."""
        return self._read(("kbert",))

    @cached_property
    def scripts(self) -> tuple[Module, ...]:
        """The files of export/, tpu/ and benchmarks/."""
        return self._read(SCRIPT_FOLDERS)

    @cached_property
    def classes(self) -> dict[str, list[str]]:
        """Class of kbert -> the names of its bases as written."""
        return {
            node.name: [ast.unparse(base) for base in node.bases]
            for module in self.modules
            for node in module.nodes
            if isinstance(node, ast.ClassDef)
        }

    @cached_property
    def by_name(self) -> dict[str, Module]:
        """The modules of kbert by their dotted names."""
        return {module.name: module for module in self.modules}

    def module_of(self, imported: Import) -> Module | None:
        """The module of kbert that an import reaches, or None."""
        name = imported.module
        return self.by_name.get(name) or self.by_name.get(name.rpartition(".")[0])

    def reached_from(self, start: Module) -> list[Module]:
        """The modules that one imports, by itself or by way of others, at whatever depth."""
        waiting, seen = [start], {start.name: start}
        while waiting:
            for imported in waiting.pop().imports():
                target = self.module_of(imported)
                if target is not None and target.name not in seen:
                    seen[target.name] = target
                    waiting.append(target)
        return list(seen.values())[1:]

    def _read(self, folders: tuple[str, ...]) -> tuple[Module, ...]:
        found = []
        for folder in folders:
            for file in sorted((self.root / folder).rglob("*.py")):
                path = file.relative_to(self.root).as_posix()
                found.append(Module(path, file.read_text(encoding="utf-8")))
        return tuple(found)

    @cached_property
    def documented(self) -> set[tuple[str, str]]:
        """The methods of kbert's classes that have a docstring: (class, method)."""
        return {
            (node.name, item.name)
            for module in self.modules
            for node in module.nodes
            if isinstance(node, ast.ClassDef)
            for item in node.body
            if isinstance(item, Function) and ast.get_docstring(item) is not None
        }

    def is_documented_above(self, name: str) -> bool:
        """Whether a method overrides one of kbert that has a docstring, which `help` shows."""
        owner, _, method = name.rpartition(".")
        waiting = [base.split(".")[-1] for base in self.classes.get(owner, [])]
        while waiting:
            current = waiting.pop()
            if (current, method) in self.documented:
                return True
            waiting.extend(base.split(".")[-1] for base in self.classes.get(current, []))
        return False

    def ancestry(self, name: str) -> set[str]:
        """A class and its bases in kbert, near and far."""
        waiting, seen = [name], set()
        while waiting:
            current = waiting.pop().split(".")[-1]
            if current in self.classes and current not in seen:
                seen.add(current)
                waiting.extend(self.classes[current])
        return seen

    def derives_from(self, name: str, roots: tuple[str, ...]) -> bool:
        """Whether a class, or a base of it in kbert, has one of the roots as a base."""
        waiting, seen = [name], set()
        while waiting:
            current = waiting.pop()
            if current in roots:
                return True
            if current not in seen:
                seen.add(current)
                waiting.extend(self.classes.get(current.split(".")[-1], []))
        return False


def is_type_checking(node: ast.AST) -> bool:
    """Whether a node is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def room_of(imported: Import) -> str | None:
    """The room of kbert that an import reaches into, or None."""
    parts = imported.module.split(".")
    return parts[1] if parts[0] == "kbert" and len(parts) > 1 else None


def functions_of(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function, bool]]:
    """Qualified name, node, and whether it is public and not nested in a function."""
    yield from _functions(tree, prefix, True)


def _functions(node: ast.AST, prefix: str, public: bool) -> Iterator[tuple[str, Function, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            name = f"{prefix}{child.name}"
            yield name, child, public and not child.name.startswith("_")
            yield from _functions(child, f"{name}.", False)
        elif isinstance(child, ast.ClassDef):
            seen = public and not child.name.startswith("_")
            yield from _functions(child, f"{prefix}{child.name}.", seen)
        elif not isinstance(child, ast.expr):  # in which no function can be defined
            yield from _functions(child, prefix, public)


# --- floors and imports ----------------------------------------------------------------------


def unknown_rooms(house: House) -> list[Violation]:
    """Every folder of kbert/ has a floor."""
    found = []
    for module in house.modules:
        if module.room is not None and module.room not in FLOORS:
            message = f"room {module.room!r} has no floor; add it to FLOORS and to docs"
            found.append(Violation(module.path, message))
        elif _sub_floor(module) is None and not module.path.endswith("__init__.py"):
            message = f"{module.room}/{module.sub_room} has no floor; add it to SUB_FLOORS"
            found.append(Violation(module.path, message))
    return found


def _sub_floor(module: Module) -> int | None:
    """The floor of a module within its room; None where it has none."""
    floors = SUB_FLOORS.get(module.room or "", ((".",),))
    return next((i for i, names in enumerate(floors) if module.sub_room in names), None)


def upward_imports_within_rooms(house: House) -> list[Violation]:
    """Within a room, imports reach lower sub-rooms or the own one."""
    found = []
    for module in house.modules:
        own = _sub_floor(module)
        for imported in module.imports():
            target = house.module_of(imported)
            if target is None or target.room != module.room or target.sub_room == module.sub_room:
                continue
            floor = _sub_floor(target)
            if own is not None and floor is not None and floor >= own:
                message = f"{module.room}/{module.sub_room} must not import {imported.module}"
                found.append(Violation(module.path, f"line {imported.line}: {message}"))
    return found


def upward_imports(house: House) -> list[Violation]:
    """Imports reach lower floors or the own room, never up or across."""
    found = []
    for module in house.modules:
        for imported in module.imports():
            room = room_of(imported)
            if module.room is None or room == module.room or room is None or room in GROUND:
                continue
            if room not in FLOORS:
                message = f"imports {imported.module}: import a module of a room"
            elif FLOORS[room] < FLOORS.get(module.room, -2):
                continue
            else:
                message = (
                    f"{module.room} (floor {FLOORS.get(module.room)}) must not import "
                    f"{imported.module} (floor {FLOORS[room]})"
                )
            found.append(Violation(module.path, f"line {imported.line}: {message}"))
    return found


def imports_of_rooms_apart(house: House) -> list[Violation]:
    """Training and prediction reach no room apart, and no room apart reaches another."""
    found = []
    for start in house.modules:
        is_plain = any(fnmatch(start.path, pattern) for pattern in PLAIN)
        others = [room for room in APART if room != start.room]
        if not is_plain and start.room not in APART:
            continue
        for module in house.reached_from(start):
            if module.room in others:
                message = f"reaches {module.name}, of a room that stands apart"
                found.append(Violation(start.path, message))
    return found


def tensorflow_imports(house: House) -> list[Violation]:
    """What works without TensorFlow imports neither it nor a module that needs it."""
    found = []
    for module in house.modules:
        if not module.keras_only or module.name == "kbert":
            continue
        for imported in module.imports():
            target = house.module_of(imported)
            if imported.package in TENSORFLOW_PACKAGES:
                message = "must work without TensorFlow; it imports"
            elif target is not None and not target.keras_only and target.name != "kbert":
                message = "must work without TensorFlow; it imports what does not:"
            else:
                continue
            where = f"{module.path}::{imported.function}" if imported.function else module.path
            found.append(Violation(where, f"line {imported.line}: {message} {imported.module}"))
    return found


def import_cycles(house: House) -> list[Violation]:
    """No module imports itself by way of others, at whatever depth the imports stand."""
    names = {module.name for module in house.modules}
    graph: dict[str, set[str]] = {}
    for module in house.modules:
        reached = set()
        for imported in module.imports():
            if imported.for_types and module.name == "kbert":
                continue
            for target in (imported.module, imported.module.rpartition(".")[0]):
                if target in names and target not in (module.name, "kbert"):
                    reached.add(target)
                    break
        graph[module.name] = reached
    found = []
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> None:
        if name in trail:
            cycle = " -> ".join([*trail[trail.index(name) :], name])
            path = next(module.path for module in house.modules if module.name == name)
            found.append(Violation(path, f"import cycle {cycle}"))
            return
        if name in done:
            return
        for target in sorted(graph[name]):
            visit(target, [*trail, name])
        done.add(name)

    for name in sorted(graph):
        visit(name, [])
    return found


def heavy_imports_at_the_top(house: House) -> list[Violation]:
    """Heavy packages are imported where they are used."""
    return [
        Violation(module.path, f"line {i.line}: {i.package} must be imported where it is used")
        for module in house.modules
        for i in module.imports()
        if i.package in HEAVY_PACKAGES and not i.function and not i.for_types
    ]


def imports_inside_functions(house: House) -> list[Violation]:
    """All other imports stand at the top; a verb of the CLI may load its room when it runs."""
    found = []
    for module in house.modules:
        for i in module.imports():
            if not i.function or i.package in HEAVY_PACKAGES:
                continue
            if module.room == "cli" and i.package == "kbert":
                continue
            # A task is known before TensorFlow is loaded; its parts are imported when used.
            if fnmatch(module.path, TASK_FILES):
                continue
            if module.keras_only and i.package in TENSORFLOW_PACKAGES:
                continue  # `tensorflow_imports` judges it
            message = f"line {i.line}: the import of {i.module} must stand at the top of the file"
            found.append(Violation(f"{module.path}::{i.function}", message))
    return found


def private_keras_imports(house: House) -> list[Violation]:
    """`keras.src` is not ours to use."""
    return [
        Violation(module.path, f"line {i.line}: {i.module} is private to Keras")
        for module in house.modules
        for i in module.imports()
        if i.module.startswith("keras.src")
    ]


def imports_of_scripts(house: House) -> list[Violation]:
    """Nothing imports export/, tpu/ or benchmarks/."""
    return [
        Violation(module.path, f"line {i.line}: nothing may import the scripts of {i.package}/")
        for module in (*house.modules, *house.scripts)
        for i in module.imports()
        if i.package in SCRIPT_FOLDERS
    ]


# What asks what a model, an example or a configuration is, where the object of its task should say.
_SNIFFING = re.compile(
    r"hasattr\((?:model|self\._?model)\b"
    r"|isinstance\([^)\n]*(?:Examples|Sentences|Config)\b"
)


def questions_of_kind(house: House) -> list[Violation]:
    """Only a task knows what its models, examples and configurations are."""
    return [
        Violation(module.path, f"line {number}: ask the object of the task instead")
        for module in house.modules
        if module.room != "tasks"
        for number, line in enumerate(module.text.splitlines(), 1)
        if _SNIFFING.search(line)
    ]


def imports_of_architectures(house: House) -> list[Violation]:
    """Only models/ knows the classes of encoders and translators; others ask by their names."""
    tables = [m.text for m in house.modules if m.path == "kbert/architectures.py"]
    classes = set(re.findall(r'"(kbert\.models\.[\w.]+)"', "".join(tables)))
    return [
        Violation(module.path, f"line {i.line}: take {i.module} through kbert.architectures")
        for module in house.modules
        if module.room not in (None, "models")
        for i in module.imports()
        if i.module in classes
    ]


# --- sizes and names -------------------------------------------------------------------------


def long_files(house: House) -> list[Violation]:
    """Files of kbert/ and scripts keep their limits."""
    found = []
    for modules, limit in ((house.modules, MAX_FILE_LINES), (house.scripts, MAX_SCRIPT_LINES)):
        for module in modules:
            lines = len(module.text.splitlines())
            most = MAX_CLASS_LINES if module.room and _is_one_class(module) else limit
            if lines > most:
                found.append(Violation(module.path, f"{lines} lines, at most {most} are allowed"))
    return found


def _is_one_class(module: Module) -> bool:
    """Whether a file holds one class and no function."""
    held = [node for node in module.tree.body if isinstance(node, (ast.ClassDef, Function))]
    return len(held) == 1 and isinstance(held[0], ast.ClassDef)


def deep_models(house: House) -> list[Violation]:
    """A model has few classes of kbert above Keras' own: what it holds, it need not inherit."""
    found = []
    for module in house.modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and house.derives_from(node.name, MODEL_BASES):
                count = len(house.ancestry(node.name))
                if count > MAX_MODEL_CLASSES:
                    message = f"{count} classes, at most {MAX_MODEL_CLASSES} are allowed"
                    found.append(Violation(f"{module.path}::{node.name}", message))
    return found


def crowded_folders(house: House) -> list[Violation]:
    """A folder of kbert/ has so few files that one look takes them in."""
    folders: dict[str, int] = {}
    for module in house.modules:
        folder, _, file = module.path.rpartition("/")
        folders[folder] = folders.get(folder, 0) + (file != "__init__.py")
    return [
        Violation(folder, f"{count} files, at most {MAX_FOLDER_FILES} are allowed")
        for folder, count in folders.items()
        if count > MAX_FOLDER_FILES
    ]


def long_functions(house: House) -> list[Violation]:
    """Functions keep their limit, counted from `def` to the last line, docstring included."""
    found = []
    for module in house.modules:
        for name, node, _ in functions_of(module.tree):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                message = f"{lines} lines, at most {MAX_FUNCTION_LINES} are allowed"
                found.append(Violation(f"{module.path}::{name}", message))
    return found


def long_constructors(house: House) -> list[Violation]:
    """Constructors of layers and models keep their limits."""
    found = []
    for module in house.modules:
        for node in module.nodes:
            if not isinstance(node, ast.ClassDef):
                continue
            if house.derives_from(node.name, MODEL_BASES):
                kind, limit = "model", MAX_MODEL_ARGUMENTS
            elif house.derives_from(node.name, LAYER_BASES):
                kind, limit = "layer", MAX_LAYER_ARGUMENTS
            else:
                continue
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                    given = (*item.args.posonlyargs, *item.args.args, *item.args.kwonlyargs)
                    count = len([a for a in given if a.arg not in ("self", "name", "dtype")])
                    if count > limit:
                        message = f"{count} arguments; a {kind} may have {limit}"
                        found.append(Violation(f"{module.path}::{node.name}", message))
    return found


def banned_names(house: House) -> list[Violation]:
    """No file or folder is named after nothing."""
    found = []
    for path in house.tracked:
        words = {Path(part).stem for part in path.split("/")}
        if words & set(BANNED_NAMES):
            found.append(Violation(path, "name the file after the one concept that it holds"))
    return found


def unknown_top_level_entries(house: House) -> list[Violation]:
    """The root of the checkout holds what the plan names."""
    entries = sorted({path.split("/")[0] for path in house.tracked})
    return [
        Violation(entry, "not in the plan; add it to TOP_LEVEL_ENTRIES and docs/architecture.md")
        for entry in entries
        if entry not in TOP_LEVEL_ENTRIES
    ]


def machine_paths(house: House) -> list[Violation]:
    """No tracked text mentions a path of one machine."""
    found = []
    for path in house.tracked:
        file = house.root / path
        if not file.is_file():
            continue
        content = file.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            for machine_path in MACHINE_PATHS:
                if machine_path in line:
                    found.append(Violation(path, f"line {number} mentions {machine_path}"))
    return found


def folders_missing_in_the_plan(house: House) -> list[Violation]:
    """docs/architecture.md has a line for every folder, and for no folder that is gone."""
    page = house.root / PLAN
    if not page.is_file():
        return []
    named = set(re.findall(r"^\| `([a-z_]+/(?:[a-z_]+/)?)`", page.read_text("utf-8"), re.MULTILINE))
    folders = {module.path.removeprefix("kbert/").rpartition("/")[0] for module in house.modules}
    there = {f"{folder}/" for folder in folders if folder}
    found = [Violation(f"kbert/{folder}", f"has no line in {PLAN}") for folder in there - named]
    found += [Violation(f"{PLAN}::{name}", "there is no such folder") for name in named - there]
    return found


# --- constructs ------------------------------------------------------------------------------


def asserts(house: House) -> list[Violation]:
    """`python -O` drops assert, so errors of kbert are raised."""
    return [
        Violation(module.path, f"line {node.lineno}: raise an error instead of assert")
        for module in house.modules
        for node in module.nodes
        if isinstance(node, ast.Assert)
    ]


def bare_excepts(house: House) -> list[Violation]:
    """`except:` also catches the interrupt of the user."""
    return [
        Violation(module.path, f"line {node.lineno}: name the exceptions to catch")
        for module in (*house.modules, *house.scripts)
        for node in module.nodes
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]


def prints(house: House) -> list[Violation]:
    """Only the command line prints."""
    return [
        Violation(module.path, f"line {node.lineno}: only kbert/cli prints")
        for module in house.modules
        if module.room != "cli"
        for node in module.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


def unregistered_classes(house: House) -> list[Violation]:
    """Layers and models are registered with Keras under "kbert".

    A class from which others of kbert derive, and which has no `call`, is abstract and need not be.
    """
    bases = {base.split(".")[-1] for every in house.classes.values() for base in every}
    found = []
    for module in house.modules:
        for node in module.nodes:
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if not house.derives_from(node.name, (*LAYER_BASES, *MODEL_BASES)):
                continue
            methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
            if node.name in bases and "call" not in methods:
                continue
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if not any("register_keras_serializable('kbert'" in d for d in decorators):
                message = 'must have @keras.saving.register_keras_serializable("kbert")'
                found.append(Violation(f"{module.path}::{node.name}", message))
    return found


def missing_annotations(house: House) -> list[Violation]:
    """Public functions annotate every argument and what they return."""
    found = []
    for module in house.modules:
        for name, node, public in functions_of(module.tree):
            if not public:
                continue
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
            bare = [a.arg for a in every if a.annotation is None and a.arg not in ("self", "cls")]
            bare += ["return"] if node.returns is None else []
            if bare:
                message = f"without annotation: {', '.join(bare)}"
                found.append(Violation(f"{module.path}::{name}", message))
    return found


def missing_docstrings(house: House) -> list[Violation]:
    """Modules, public classes and public functions say what they are."""
    found = []
    for module in house.modules:
        empty_room = module.path.endswith("__init__.py") and not module.text.strip()
        if not empty_room and ast.get_docstring(module.tree) is None:
            found.append(Violation(module.path, "the module has no docstring"))
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if ast.get_docstring(node) is None:
                    found.append(Violation(f"{module.path}::{node.name}", "has no docstring"))
        for name, node, public in functions_of(module.tree):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            known = node.name in KNOWN_CONTRACTS or any(
                d.endswith((".setter", "overload")) for d in decorators
            )
            known = known or house.is_documented_above(name)
            if public and not known and ast.get_docstring(node) is None:
                found.append(Violation(f"{module.path}::{name}", "has no docstring"))
    return found


# Words and phrases for which the field has a term; CONTRIBUTING.md has the glossary.
_ODD_BEGINNING = re.compile(r"(?:What|Whether|Where|How|As) ")
_ODD_WORDS = re.compile(
    r"\b(?:anew|teller|whoever|(?:as|see) there|(?:of )?like (?:length|sizes?)"
    r"|go(?:es|ne|ing)? on with|(?:is|are) told|tells of)\b",
    re.IGNORECASE,
)


def odd_language(house: House) -> list[Violation]:
    """Docstrings use the field's terms, and begin with a verb or a noun."""
    found = []
    for module in house.modules:
        nodes = [
            node
            for node in module.nodes
            if isinstance(node, ast.Module | ast.ClassDef | Function)
        ]
        for node in nodes:
            text = ast.get_docstring(node, clean=False) or ""
            name = getattr(node, "name", "")
            where = f"{module.path}::{name}" if name else module.path
            odd = _ODD_BEGINNING.match(text) or _ODD_WORDS.search(text)
            if odd is not None:
                found.append(Violation(where, f"say it in the field's terms: {odd[0]!r}"))
    return found


# --- the mirror of the tests -----------------------------------------------------------------


def missing_tests(house: House) -> list[Violation]:
    """kbert/text/sequences/packing.py is tested in tests/text/sequences/test_packing.py."""
    found = []
    for module in house.modules:
        folder, _, file = module.path.removeprefix("kbert/").rpartition("/")
        if file == "__init__.py":
            continue
        expected = "/".join(part for part in ("tests", folder, f"test_{file}") if part)
        if not (house.root / expected).is_file():
            found.append(Violation(module.path, f"has no {expected}"))
    return found


def homeless_tests(house: House) -> list[Violation]:
    """tests/text/test_a.py, or test_a_more.py, tests kbert/text/a.py."""
    stems: dict[str, set[str]] = {}
    for module in house.modules:
        folder, _, file = module.path.removeprefix("kbert/").rpartition("/")
        stems.setdefault(folder, set()).add(file.removesuffix(".py"))
    found = []
    for room in FLOORS:
        for file in sorted((house.root / "tests" / room).rglob("test_*.py")):
            path = file.relative_to(house.root).as_posix()
            folder = path.removeprefix("tests/").rpartition("/")[0]
            name = file.stem.removeprefix("test_")
            if folder == "data/samples":  # the samples are data
                continue
            if not any(name == s or name.startswith(f"{s}_") for s in stems.get(folder, ())):
                found.append(Violation(path, f"there is no kbert/{folder}/{name}.py"))
    return found
