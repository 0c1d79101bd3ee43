"""Cases for experimental and removed operators of ai.onnx that onnxruntime still runs or that its optimizer writes."""
import numpy as np

from node_cases import case, refused, values

IMAGE = values(2, 3, 5, 6)
for opset in (1, 9):
    case(f"ImageScaler opset {opset}", "ImageScaler", {"x": IMAGE}, ["y"], opset, scale=0.5, bias=[1.0, 2.0, 3.0])
    case(f"Crop opset {opset}", "Crop", {"x": IMAGE}, ["y"], opset, border=[1, 2, 2, 1])
case("Crop with scale", "Crop", {"x": IMAGE}, ["y"], 8, border=[1, 2, 1, 1], scale=[2, 3])
case("Crop with zero borders", "Crop", {"x": IMAGE}, ["y"], 8, border=[1, 0, 0, 0])
case("Affine", "Affine", {"x": IMAGE}, ["y"], 8, alpha=2.0, beta=0.5)
case("Scale", "Scale", {"x": IMAGE}, ["y"], 8, scale=2.0)
case("ScaledTanh", "ScaledTanh", {"x": IMAGE}, ["y"], 8, alpha=2.0, beta=0.5)
case("ParametricSoftplus", "ParametricSoftplus", {"x": IMAGE}, ["y"], 8, alpha=2.0, beta=0.5)
case("DynamicSlice", "DynamicSlice", {"x": IMAGE, "S": np.array([1, 2], "i8"), "E": np.array([3, 5], "i8"), "A": np.array([2, 3], "i8")},
     ["y"], 9)
for across in (0, 1):
    for variance in (0, 1):
        case(f"MeanVarianceNormalization opset 8, across_channels={across}, normalize_variance={variance}", "MeanVarianceNormalization",
             {"x": IMAGE}, ["y"], 8, across_channels=across, normalize_variance=variance)
for opset in (1, 9, 13, 16):
    case(f"LayerNormalization opset {opset}", "LayerNormalization", {"x": values(2, 3, 8), "S": values(8), "B": values(8, seed=1)}, ["y"],
         opset, axis=-1, epsilon=1e-5)

refused("Crop border larger than the input", "border and scale exceed", "Crop", {"x": IMAGE}, ["y"], opset=8, border=[4, 0, 3, 0])
refused("ImageScaler bias of wrong length", "one element per channel", "ImageScaler", {"x": IMAGE}, ["y"], opset=8, bias=[1.0, 2.0])
