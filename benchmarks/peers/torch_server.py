"""transformers on PyTorch behind FastAPI, as such models are usually served: a request, a batch.

    python -m peers.torch_server TASK HUGGINGFACE_FOLDER

It takes the requests that `kbert serve` takes, {"inputs": {column: [text, ...]}}, and prints one
line with its address when it listens.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from fastapi import FastAPI
from peers.rest_process import serve
from peers.torch_spans import SpanReader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

Answer = Callable[[dict[str, list[str]]], dict[str, Any]]


def classifier(folder: str) -> Answer:
    """Texts to the likeliest class with its probability."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()

    def answer(inputs: dict[str, list[str]]) -> dict[str, Any]:
        options = {"truncation": True, "max_length": 128, "padding": True, "return_tensors": "pt"}
        with torch.inference_mode():
            scores = model(**tokenizer(inputs["text"], **options)).logits.softmax(-1)
        best = scores.argmax(-1)
        labels = [model.config.id2label[int(i)] for i in best]
        return {"label": labels, "score": scores.max(-1).values.tolist()}

    return answer


def reader(folder: str) -> Answer:
    """Questions with contexts to answers."""
    model = SpanReader(folder, "float32", 384, 128)
    return lambda inputs: {"answer": list(map(model.answer, inputs["question"], inputs["context"]))}


def recognizer(folder: str) -> Answer:
    """Texts to entities, by the first piece of each word."""
    tagger = pipeline("token-classification", folder, aggregation_strategy="first")

    def answer(inputs: dict[str, list[str]]) -> dict[str, Any]:
        found = tagger(inputs["text"], batch_size=len(inputs["text"]))
        return {"entities": [[one["word"] for one in entities] for entities in found]}

    return answer


def main() -> None:
    """Serves until it is ended."""
    task, folder = sys.argv[1:]
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    answer = {"classification": classifier, "questions": reader, "names": recognizer}[task](folder)
    app = FastAPI()

    # A plain function: FastAPI runs it in its threads, so that requests overlap.
    @app.post(f"/v1/models/{task}:predict")
    def predict(request: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
        return {"outputs": answer(request["inputs"])}

    serve(app)


if __name__ == "__main__":
    main()
