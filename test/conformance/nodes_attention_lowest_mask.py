"""Cases for Attention of ai.onnx whose float mask contains the lowest fp32 number. Like onnxruntime, mlc must mask these keys
as if the number were -inf.
"""
import numpy as np

from node_cases import case, values

LOWEST = np.finfo("f4").min
for name, rows in (("some keys", [[0, LOWEST, 0, 0], [0.5, 0, LOWEST, 0], [0, 0, 0, LOWEST]]),
                   ("a whole row", [[LOWEST] * 4, [0.5, 0, LOWEST, 0], [0, 0, 0, 0]])):
    for given in ("m", "M"):
        case(f"Attention, a {'constant' if given == 'M' else 'run-time'} mask excludes {name}", "Attention",
             {"q": values(1, 2, 3, 4, seed=1), "k": values(1, 2, 4, 4, seed=2), "v": values(1, 2, 4, 4, seed=3), given: np.array(rows, "f4")},
             ["y"], 23)
