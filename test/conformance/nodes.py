"""CASES of all nodes_*.py files but nodes_special.py, which other tests judge."""
import nodes_microsoft  # noqa: F401
import nodes_quantized  # noqa: F401
import nodes_recurrent  # noqa: F401
import nodes_regions  # noqa: F401
import nodes_signal  # noqa: F401
from onnx_nodes import CASES  # noqa: F401
