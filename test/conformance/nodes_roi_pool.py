"""Cases for MaxRoiPool, which ONNX's own tests do not cover: regions outside the image, with swapped corners, and smaller than
their bins.
"""
import numpy as np

from node_cases import case, values

REGIONS = np.array([[0, 0, 0, 8, 10], [1, 2.5, 1.5, 6.5, 9.25], [1, 5, 5, 5, 5], [0, -3, -2, 4, 4], [0, 4, 4, 20, 30],
                    [1, 7, 8, 2, 3], [0, 15, 15, 18, 18]], "f4")
for bins, factor in (((2, 3), 1.0), ((4, 4), 0.5), ((7, 5), 1.25)):
    case(f"MaxRoiPool {bins} scale={factor}", "MaxRoiPool", {"x": values(2, 3, 11, 9), "r": REGIONS}, ["y"], 13,
         pooled_shape=list(bins), spatial_scale=factor)
case("MaxRoiPool constant regions", "MaxRoiPool", {"x": values(2, 3, 11, 9), "R": REGIONS}, ["y"], 13, pooled_shape=[2, 2])
