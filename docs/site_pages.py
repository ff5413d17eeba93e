"""Pages that the site has beside those of docs/: README and its like, and the reference.

MkDocs runs the functions that begin with `on_` (`hooks` of .mkdocs.yml). Of kbert only the program
is imported, which needs no TensorFlow until a command runs; public names are read from the source.
"""

import ast
import json
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CARDS = sorted(ROOT.glob("kbert/checkpoints/shipped/*/README.md"))
# Files that are pages of the site too, and their places there.
OTHER_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "export/README.md": "deployment.md",
    **{card.relative_to(ROOT).as_posix(): f"cards/{card.parent.name}.md" for card in CARDS},
}
# Room of a public name -> the section of the reference that it stands in.
SECTIONS = {
    "tasks": "Models on raw text",
    "models": "Encoders and networks",
    "text": "Tokenizers",
    "serving": "Loading and export",
}
# Inherited methods that the page of a class shows; all others are on a page of the parts.
INHERITED = (
    *("from_pretrained", "from_size", "save_pretrained"),
    *("compile", "fit", "evaluate", "predict", "hidden_states", "attention_scores"),
    *("add_adapter", "train_adapter", "set_active_adapters", "merge_adapter"),
    *("save_adapter", "load_adapter"),
)
# Page of the reference's last section -> the modules on it, with all that is public in them.
PARTS = {
    "All models on raw text": ("pipelines/task_model",),
    "All encoders": ("models/encoder", "models/encoder_model", "models/adapters/*"),
    "Encoder-decoders": ("models/encoder_decoders/encoder_decoder",),
    "Heads of tasks": ("tasks/*/head",),
    "Layers": ("layers/*",),
    "Layers of adapters": ("layers/adapters/*",),
    "Recurrent layers": ("layers/recurrent/*",),
    "Convolutions": ("layers/convolution/*",),
    "Losses": ("optimization/*losses",),
    "Optimizers and schedules": ("optimization/adamw", "optimization/schedules"),
    "Callbacks": ("training/callbacks/*",),
    "Metrics": ("metrics/*",),
    "Beam search": ("decoding/*",),
    "Texts and vocabularies": ("text/*",),
    "Packing, windows, spans, tags": ("text/sequences/*",),
    "Configurations of runs": ("training/config/*",),
    "Training by a configuration": ("training/run", "training/several_runs", "training/stages"),
    "Asking servers": ("serving/client/*",),
    "Whole files": ("serving/batch_prediction/*",),
}
_ITEM = re.compile(r"([-*]|\d+\.) ")
_CODE = re.compile(r"`[^`]+`")
_LINK = re.compile(r"\[([^][]+)\]\(([^)#\s]+)((?:#[^)\s]*)?)\)")


def public_names() -> dict[str, str]:
    """Public name -> the module that holds it, as kbert/__init__.py says."""
    tree = ast.parse((ROOT / "kbert" / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_MODULE_OF":
            return ast.literal_eval(node.value)
    raise ValueError("kbert/__init__.py must assign `_MODULE_OF`. Received: no such name")


def summary(name: str, module: str) -> str:
    """The first line of the docstring of a public name."""
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").split("\n")[0]
    raise ValueError(f"{module} must define {name}. Received: no such name")


def modules_of(patterns: tuple[str, ...]) -> list[str]:
    """The modules that a page of parts shows."""
    files = [file for pattern in patterns for file in sorted(ROOT.glob(f"kbert/{pattern}.py"))]
    paths = [file.relative_to(ROOT).with_suffix("") for file in files if file.name[0] != "_"]
    return [".".join(path.parts) for path in paths]


def reference() -> dict[str, dict[str, str]]:
    """Section of the reference -> path of each page -> its title."""
    sections: dict[str, dict[str, str]] = {title: {} for title in SECTIONS.values()}
    for name, module in public_names().items():
        sections[SECTIONS[module.split(".")[1]]][f"reference/{name}.md"] = f"kbert.{name}"
    sections["Parts"] = {
        f"reference/parts/{re.sub('[^a-z]+', '-', title.lower())}.md": title for title in PARTS
    }
    return sections


def reference_pages() -> Iterator[tuple[str, str]]:
    """Path and text of each page of the reference."""
    modules = public_names()
    index = (
        "# Reference\n\nThe public names of the package, and the parts that they are made of; the "
        "verbs and options of [the program](program.md).\n"
    )
    for section, pages in reference().items():
        index += f"\n## {section}\n\n| name | |\n| --- | --- |\n"
        for path, title in pages.items():
            told = ""
            if title in PARTS:
                shown = [f"::: {module}\n" for module in modules_of(PARTS[title])]
                yield path, "\n".join([f"# {title}\n", *shown])
            else:
                name = title.removeprefix("kbert.")
                told = summary(name, modules[name])
                yield path, (
                    f"---\ntitle: {title}\n---\n\n::: {title}\n    options:\n"
                    f"      heading_level: 1\n      inherited_members: [{', '.join(INHERITED)}]\n"
                )
            index += f"| [{title}]({path.removeprefix('reference/')}) | {told} |\n"
    yield "reference/index.md", index
    yield "reference/program.md", commands_page()


def commands_page() -> str:
    """The verbs of the program with their options, as `--help` shows them."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    import typer

    from kbert.cli.main import app

    text = "# The program kbert\n\nThe same is shown by `kbert VERB --help`.\n"
    for verb, command in typer.main.get_command(app).commands.items():
        told = re.sub(r"(?m)^  (?! )", "    ", command.help.replace("\b\n", ""))
        text += f"\n## kbert {verb}\n\n{told}\n\n| option | default | what |\n| --- | --- | --- |\n"
        for given in command.params:
            names = ", ".join(f"`{name}`" for name in [*given.opts, *given.secondary_opts])
            if given.param_type_name == "argument":
                names = f"`{given.metavar or given.name.upper()}`"
            shown = given.show_default if isinstance(given.show_default, str) else given.default
            default = "" if shown in (None, False, ()) else f"`{shown}`"
            about = (given.help or "").replace("|", "\\|").replace("\n", " ")
            text += f"| {names} | {default} | {about} |\n"
    return text


def notebook_page(path: Path) -> str:
    """A notebook as a page: its texts, its code and what that printed."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = ""
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            source = f"```python\n{source}\n```"
        text += f"{source}\n\n"
        for output in cell.get("outputs", ()):
            shown = output.get("text") or output["data"]["text/plain"]
            text += f"``` {{ .text .output .no-copy }}\n{''.join(shown).rstrip()}\n```\n\n"
    return f"{text}[This page as a notebook]({path.name})\n"


def place_of(path: str) -> str | None:
    """The place in the site of a file of the project; None where it has none."""
    if path.endswith(".ipynb"):
        path = path.removesuffix(".ipynb") + ".md"
    return path.removeprefix("docs/") if path.startswith("docs/") else OTHER_PAGES.get(path)


def relinked(text: str, source: str) -> str:
    """The text of a page with its links between files of the project as links within the site.

    A link that is called by its file is called by the title of the page there.
    """
    here = posixpath.dirname(place_of(source) or "")

    def place(found: re.Match[str]) -> str:
        label, given, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), given))
        target = None if ":" in given else place_of(path)
        if target is None:
            return found[0]
        if label.endswith(".md"):
            label = (ROOT / path).read_text(encoding="utf-8").split("\n")[0].removeprefix("# ")
        return f"[{label}]({posixpath.relpath(target, here or '.')}{anchor})"

    return _LINK.sub(place, text)


def as_on_github(text: str) -> str:
    """The text of a page with what Python-Markdown reads otherwise than GitHub written for it.

    There a list begins behind an empty line only, and a `|` of code in a table is written bare.
    """
    lines, in_code, before = [], False, ""
    for line in text.split("\n"):
        in_code ^= line.startswith("```")
        if not in_code:
            begins = _ITEM.match(line) and not _ITEM.match(before)
            if begins and before and before[0] not in " |#":
                lines.append("")
            if line.startswith("|"):
                line = _CODE.sub(lambda found: found[0].replace("\\|", "|"), line)
        lines.append(line)
        before = line
    return "\n".join(lines)


def complete(nav: list[Any]) -> None:
    """Adds the pages of the reference and the cards to a navigation."""
    entries: list[Any] = ["reference/index.md", {"The program kbert": "reference/program.md"}]
    for section, pages in reference().items():
        entries.append({section: [{title: path} for path, title in pages.items()]})
    next(item for item in nav if "Reference" in item)["Reference"] = entries
    cards = [{card.parent.name: f"cards/{card.parent.name}.md"} for card in CARDS]
    next(item for item in nav if "Tasks" in item)["Tasks"].append({"Shipped models": cards})


def on_config(config: Any) -> None:
    """Completes the navigation; `<name>` within a line, as docstrings have it, is no tag."""
    from markdown.extensions import Extension

    class NoTags(Extension):
        """Leaves tags within a line as they are written."""

        def extendMarkdown(self, md: Any) -> None:
            md.inlinePatterns.deregister("html")

    complete(config.nav)
    config.markdown_extensions.append(NoTags())


def on_files(files: Any, config: Any) -> None:
    """Adds the pages that are not in docs/."""
    from mkdocs.structure.files import File

    for source, path in OTHER_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, path, content=text))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        path = f"notebooks/{notebook.stem}.md"
        files.append(File.generated(config, path, content=notebook_page(notebook)))
    for path, text in reference_pages():
        files.append(File.generated(config, path, content=text))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Makes a page of the project one of the site; found first are the pages that explain."""
    path = page.file.src_uri
    if path.startswith("reference/"):
        page.meta["search"] = {"boost": 0.5}
        return markdown
    if path == "changelog.md":
        page.meta["search"] = {"boost": 0.1}
    sources = {place: source for source, place in OTHER_PAGES.items()}
    return as_on_github(relinked(markdown, sources.get(path, f"docs/{path}")))


def on_post_page(output: str, **_: Any) -> str:
    """Names the dialog of the search, which the theme leaves without a name."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def on_post_template(output_content: str, **_: Any) -> str:
    """As for pages; the one of addresses that lead nowhere (404.html) is a template."""
    return on_post_page(output_content)
