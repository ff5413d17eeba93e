"""TensorFlow's errors of graphs in words for people: the error alone, without nodes and files."""

import re

# Beginnings of lines of TensorFlow's errors that describe a node, not the error.
_OF_A_NODE = re.compile(r"Detected at node|<stack traces|File \"|\[*\{\{|\d+ root error|\(\d+\)")
_NODES = re.compile(r"\{\{(function_node|node) [^}]*\}\}\s*")
_ASSERTED = re.compile(r"assertion failed: \[(.*)\]")


def first_line(error: BaseException) -> str:
    """Returns an error's message, without the nodes and files of TensorFlow's graphs."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Graph execution error"):
        # The nodes follow, each with the lines of the program that made it; then the error.
        own = [line for line in lines[1:] if not _OF_A_NODE.match(line)]
        lines = own[-1:] or lines
    found = _NODES.sub("", lines[0]) if lines else type(error).__name__
    if (asserted := _ASSERTED.fullmatch(found)) and "] [" not in found:
        found = asserted[1]
    return found
