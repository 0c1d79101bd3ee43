"""CASES, the cases of all nodes_*.py files."""
import importlib
import pathlib

from node_cases import CASES  # noqa: F401

for file in sorted(pathlib.Path(__file__).parent.glob("nodes_*.py")):
    importlib.import_module(file.stem)
