"""Attention of ONNX, where the mask that is added holds the lowest number of fp32: onnxruntime hides such keys as it does those of -inf."""
import numpy as np

from onnx_nodes import case, values

LOWEST = np.finfo("f4").min
for name, rows in (("some keys", [[0, LOWEST, 0, 0], [0.5, 0, LOWEST, 0], [0, 0, 0, LOWEST]]),
                   ("a whole row", [[LOWEST] * 4, [0.5, 0, LOWEST, 0], [0, 0, 0, 0]])):
    for given in ("m", "M"):
        case(f"Attention hides {name} of a {'constant' if given == 'M' else 'run-time'} mask", "Attention",
             {"q": values(1, 2, 3, 4, seed=1), "k": values(1, 2, 4, 4, seed=2), "v": values(1, 2, 4, 4, seed=3), given: np.array(rows, "f4")},
             ["y"], 23)
