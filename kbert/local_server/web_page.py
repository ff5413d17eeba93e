"""The web page to try models: static files, and a list of the models. It sends REST requests."""

import base64
from functools import cache
from pathlib import Path
from typing import Any

import tensorflow as tf
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from kbert.data.samples.drawn_shapes import drawn_shapes
from kbert.local_server.model_store import ModelStore
from kbert.local_server.served_model import LoadedVersion
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.tasks.registry import all_tasks

_FOLDER = Path(__file__).parent / "web"
_SCRIPTS = ("page.js", "answers.js", "captions.js", "examples.js", "images.js")
_FILES = ("page.css", "icon.svg", *_SCRIPTS)
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
_CAPTIONING = "captioning"
# Drawn shapes that are offered as examples: their number, seed, and side in pixels.
_DRAWN = (3, 4, 192)
_BY_CLASS = {task.model_name: task.page for task in all_tasks()}


def page_routes(store: ModelStore, max_request_bytes: int) -> list[Route]:
    """Returns the routes of the page; its list of models holds the largest size of a request."""

    async def models(request: Request) -> Response:
        listed = [
            one
            for name, model in sorted(store.models.items())
            if model.ready
            for one in described(name, model.pick())
        ]
        content = {"models": listed, "max_request_bytes": max_request_bytes}
        return JSONResponse(content, headers=_HEADERS)

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
    found = [
        {
            "key": key,
            "name": name,
            "version": version.number,
            "signature": signature,
            "task": task_of(about, signatures[signature]["outputs"]),
            "pair": bool(about.get("pair")),
            "labels": about.get("labels"),
            "image_fit": about.get("image_fit"),
            "signatures": signatures,
        }
        for key, (signature, about) in (entries or {name: (main, version.about)}).items()
    ]
    for one in found:
        inputs = one["signatures"][one["signature"]]["inputs"]
        if one["task"] == _CAPTIONING and len(inputs) == 1:
            one["examples"] = [{inputs[0]["name"]: image} for image in _drawn_images()]
    return found


def task_of(about: dict[str, Any], outputs: list[str]) -> str:
    """Returns the page of the task of a model's metadata, or else of its outputs, or "other"."""
    if about.get("class") in _BY_CLASS:
        return _BY_CLASS[about["class"]]
    pages = [task.page for task in all_tasks() if task.has_outputs(outputs)]
    pages += [page for page, output in _BY_ONE_OUTPUT if output in outputs]
    return next(iter(pages), "other")


@cache
def _drawn_images() -> list[dict[str, str]]:
    """Returns drawn shapes as `title`, a caption, and `url`, a data URL with a PNG file."""
    images, captions = drawn_shapes(*_DRAWN, captions_per_image=1)
    files = [tf.io.encode_png(pixels).numpy() for pixels in images]
    urls = [f"data:image/png;base64,{base64.b64encode(file).decode('ascii')}" for file in files]
    return [{"title": texts[0], "url": url} for texts, url in zip(captions, urls)]


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
