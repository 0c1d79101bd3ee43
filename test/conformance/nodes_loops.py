"""Cases for loops whose bodies declare or produce a value of one element either as a scalar or as a vector."""
import numpy as np

import onnx_wire as wire
from node_cases import TYPES, case, values

FLOAT, INT64, BOOL = TYPES[np.dtype("f4")], TYPES[np.dtype("i8")], TYPES[np.dtype("?")]
TRUE = np.array(True)


def constant(name, dtype, value):
    value = np.array(value, dtype)
    return wire.node("Constant", [], [name], value=wire.tensor("", TYPES[value.dtype], value.shape, value.tobytes()))


def body(nodes, index):
    """A loop body that carries `a` as `b` and has the scan output `f`."""
    nodes = [*nodes, wire.node("Add", ["a", "f"], ["b"]), wire.node("Identity", ["go"], ["on"]), wire.node("Identity", ["f"], ["s"])]
    return (wire.graph(nodes, [wire.value_info("i", INT64, index), wire.value_info("go", BOOL, []), wire.value_info("a", FLOAT, [4])],
                       [wire.value_info("on", BOOL, []), wire.value_info("b", FLOAT, [4]), wire.value_info("s", FLOAT, None)], name="body"),)


# A loop body that reshapes its input a of shape [1] or [] to a scalar.
shrinking = (wire.graph([constant("scalar", "i8", []), constant("half", "f4", 0.5), wire.node("Reshape", ["a", "scalar"], ["f"]),
                         wire.node("Add", ["f", "half"], ["b"]), wire.node("Identity", ["go"], ["on"]), wire.node("Identity", ["f"], ["s"])],
                        [wire.value_info("i", INT64, []), wire.value_info("go", BOOL, []), wire.value_info("a", FLOAT, None)],
                        [wire.value_info("on", BOOL, []), wire.value_info("b", FLOAT, None), wire.value_info("s", FLOAT, None)], name="body"),)

for trips, said in (("n", "run-time"), ("N", "constant")):
    three = {trips: np.array(3, "i8"), "Go": TRUE}
    for index in ([], [1]):
        case(f"Loop, iteration number of shape {index}, {said} trip count", "Loop", three | {"x": values(4)}, ["y", "z"], 13,
             body=body([wire.node("Cast", ["i"], ["f"], to=FLOAT)], index))
    case(f"Loop, body reshapes a slice of unknown size to a scalar, {said} trip count", "Loop", three | {"x": values(4)}, ["y", "z"], 13,
         body=body([constant("one", "i8", [1]), constant("zero", "i8", [0]), constant("scalar", "i8", []), wire.node("Add", ["i", "one"], ["end"]),
                    wire.node("Slice", ["a", "i", "end", "zero"], ["part"]), wire.node("Reshape", ["part", "scalar"], ["f"])], [1]))
    case(f"Loop, initial value of shape [1], body output is a scalar, {said} trip count", "Loop", three | {"x": values(1)}, ["y", "z"], 13,
         body=shrinking)
