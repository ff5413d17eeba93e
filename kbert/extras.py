"""The name of kbert's distribution, and how one of its extras is installed.

The name `kbert` on the package index is another project's: what is imported as `kbert` is installed
as `kbert-tf`, and nothing of kbert may say `pip install kbert`.
"""

DISTRIBUTION = "kbert-tf"


def install_extra(name: str) -> str:
    """Returns how to install an extra of setup.cfg, such as "serving", for the end of an error."""
    return (
        f'pip install ".[{name}]" in a clone of kbert, or pip install '
        f'"{DISTRIBUTION}[{name}] @ git+URL" with the URL of its repository'
    )
