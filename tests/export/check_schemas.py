"""Holds what is written for other programs to public schemas and linters: `make lint-export`.

Needs what that target installs into an environment of its own, and nothing of kbert.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import kserve
import kubernetes_validate
import yaml

EXPORT = Path(__file__).parents[2] / "export"
PROGRAMS = Path(sys.executable).parent


def unknown_fields(value: Any, kind: str, place: str = "") -> list[str]:
    """The fields of a KServe object that its model, a class of `kserve`, does not have.

    Classes of Kubernetes are left to `kubernetes_validate`.
    """
    if kind.startswith("list["):
        of, parts = kind[5:-1], enumerate(value)
        return [field for i, one in parts for field in unknown_fields(one, of, f"{place}[{i}]")]
    model = getattr(kserve, kind, None) or getattr(kserve.models, kind, None)
    if model is None:
        return []
    types = {model.attribute_map[name]: of for name, of in model.openapi_types.items()}
    found = [f"{place}.{key}" for key in value if key not in types]
    for key in types.keys() & value.keys():
        found += unknown_fields(value[key], types[key], f"{place}.{key}")
    return found


def main() -> None:
    """Raises, or ends with a program's words and code, for the first file that is not right."""
    compose = ["--builtin-schema", "vendor.compose-spec", EXPORT / "docker" / "compose.yaml"]
    for program, *arguments in (
        ("hadolint", EXPORT / "docker" / "Dockerfile"),
        ("shellcheck", EXPORT / "vertex.sh"),
        ("check-jsonschema", *compose),
    ):
        subprocess.run([PROGRAMS / program, *arguments], check=True)
    page = (EXPORT.parent / "docs" / "distribution.md").read_text(encoding="utf-8")
    dockerfile = page.partition("```dockerfile\n")[2].partition("```")[0]
    subprocess.run([PROGRAMS / "hadolint", "-"], input=dockerfile, text=True, check=True)
    config, runtime, service = yaml.safe_load_all((EXPORT / "kserve.yaml").read_text())
    pod = {key: runtime["spec"][key] for key in ("containers", "volumes")}
    jobset = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    named = {"metadata": {"name": "one"}}
    for one in (
        config,
        {"apiVersion": "v1", "kind": "Pod", **named, "spec": pod},
        {"apiVersion": "batch/v1", "kind": "Job", **named, "spec": job},
    ):
        kubernetes_validate.validate(one, "1.34", strict=True)
    for one, version in ((runtime, "V1alpha1"), (service, "V1beta1")):
        if found := unknown_fields(one, version + one["kind"]):
            sys.exit(f"kserve.yaml: {one['kind']} has no {', '.join(found)}")
    print("all files follow their schemas")


if __name__ == "__main__":
    main()
