"""Cases for Fourier transforms with lengths and axes that ONNX's own tests do not cover."""
import numpy as np

from node_cases import case, values

SIGNAL = values(2, 6, 5, 1, seed=1)
for inverse in (0, 1):
    for size in (4, 6, 9):
        x = SIGNAL if not inverse else values(2, 6, 5, 2, seed=2)
        case(f"DFT inverse={inverse} size={size}", "DFT", {"x": x, "N": np.array(size, "i8")}, ["y"], 17, inverse=inverse, axis=1)
        case(f"DFT inverse={inverse} size={size} axis=2", "DFT", {"x": x, "N": np.array(size, "i8"), "A": np.array(-2, "i8")}, ["y"],
             20, inverse=inverse)
case("DFT onesided", "DFT", {"x": SIGNAL}, ["y"], 17, onesided=1, axis=1)
for onesided in (0, 1):
    case(f"STFT onesided={onesided}", "STFT", {"x": values(2, 20, 1), "S": np.array(3, "i8"), "w": values(8, seed=1) + 2,
                                               "L": np.array(8, "i8")}, ["y"], 17, onesided=onesided)
