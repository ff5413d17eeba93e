"""The web page to try models: static files, and a list of the models. It sends REST requests."""

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from kbert.local_server.model_store import ModelStore
from kbert.local_server.served_model import LoadedVersion
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.tasks.registry import all_tasks

_FOLDER = Path(__file__).parent / "web"
_FILES = ("page.css", "icon.svg", "page.js", "answers.js", "examples.js")
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
# Tasks of models that have not all outputs of kbert's, by one of them.
_BY_ONE_OUTPUT = (
    ("translation", "translation"),
    ("question_answering", "answer"),
    ("spans", "answers"),
    ("entities", "entity"),
    ("masks", "filled"),
    ("choice", "choice"),
    ("classification", "label"),
    ("regression", "score"),
)
_BY_CLASS = {task.model_name: task.page for task in all_tasks()}


def page_routes(store: ModelStore) -> list[Route]:
    """Returns the routes of the page."""

    async def models(request: Request) -> Response:
        listed = [
            one
            for name, model in sorted(store.models.items())
            if model.ready
            for one in described(name, model.pick())
        ]
        return JSONResponse({"models": listed}, headers=_HEADERS)

    files = {"/": "index.html", **{f"/web/{name}": name for name in _FILES}}
    routes = [Route(path, _file(name)) for path, name in files.items()]
    return [*routes, Route("/web/models", models)]


def described(name: str, version: LoadedVersion) -> list[dict[str, Any]]:
    """Describes a model for the page, by its name and the version that answers.

    There is one entry; one per task for an export with several; none for one without signatures.
    """
    signatures: dict[str, dict[str, Any]] = {
        key: {"inputs": _in_order(key, version), "outputs": list(signature.outputs)}
        for key, signature in version.model.signatures.items()
    }
    tasks = version.about.get("tasks") or {}
    if not signatures:
        return []
    main = SERVING_DEFAULT if SERVING_DEFAULT in signatures else next(iter(signatures))
    entries = {f"{name} / {task}": (task, tasks[task]) for task in tasks if task in signatures}
    return [
        {
            "key": key,
            "name": name,
            "version": version.number,
            "signature": signature,
            "task": task_of(about, signatures[signature]["outputs"]),
            "pair": bool(about.get("pair")),
            "labels": about.get("labels"),
            "signatures": signatures,
        }
        for key, (signature, about) in (entries or {name: (main, version.about)}).items()
    ]


def task_of(about: dict[str, Any], outputs: list[str]) -> str:
    """Returns the page of the task of a model's metadata, or else of its outputs, or "other"."""
    if about.get("class") in _BY_CLASS:
        return _BY_CLASS[about["class"]]
    pages = [task.page for task in all_tasks() if task.has_outputs(outputs)]
    pages += [page for page, output in _BY_ONE_OUTPUT if output in outputs]
    return next(iter(pages), "other")


def _in_order(signature: str, version: LoadedVersion) -> list[dict[str, Any]]:
    """Returns the inputs in the order of the function's arguments, if kbert.json has it."""
    inputs = version.model.signatures[signature].inputs
    told = version.about.get("signatures", {}).get(signature, {}).get("inputs", [])
    names = [one["name"] for one in told]
    names = names if set(names) == set(inputs) else list(inputs)
    return [{"name": name, **inputs[name].as_json()} for name in names]


def _file(name: str) -> Any:
    async def send(request: Request) -> Response:
        path = _FOLDER / name
        return FileResponse(path, media_type=_TYPES[path.suffix], headers=_HEADERS)

    return send
