"""Cases for LSTM, GRU and RNN with attributes that ONNX's own tests do not cover."""
import numpy as np

from node_cases import case, values


def recurrent(name, op, steps=3, batch=2, inputs=3, hidden=2, bias=True, state=True, peephole=False, lengths=None, opset=14,
              run_time=False, outputs=("y", "y_h", "y_c"), **attributes):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    first = attributes.get("layout", 0)
    tell = str.lower if run_time else str.upper
    shape = (batch, count, hidden) if first else (count, batch, hidden)
    all_inputs = {"x": values(*((batch, steps, inputs) if first else (steps, batch, inputs)), seed=3),
                  tell("w"): values(count, gates * hidden, inputs, seed=1), tell("r"): values(count, gates * hidden, hidden, seed=2),
                  tell("b"): values(count, 2 * gates * hidden, seed=4) if bias else None,
                  "lengths" if run_time else "Lengths": None if lengths is None else np.array(lengths, "i4"),
                  "h": values(*shape, seed=5) if state else None}
    if op == "LSTM":
        all_inputs |= {"c": values(*shape, seed=6) if state else None, tell("p"): values(count, 3 * hidden, seed=7) if peephole else None}
    case(name, op, all_inputs, list(outputs)[:3 if op == "LSTM" else 2], opset, hidden_size=hidden, **attributes)


for op in ("LSTM", "GRU", "RNN"):
    for direction in ("forward", "reverse", "bidirectional"):
        recurrent(f"{op} {direction}", op, direction=direction)
        recurrent(f"{op} {direction} lengths", op, direction=direction, lengths=[3, 2])
        recurrent(f"{op} {direction} lengths and weights at run time", op, direction=direction, lengths=[1, 3], run_time=True)
    recurrent(f"{op} opset 7 without state and bias", op, opset=7, state=False, bias=False)
    recurrent(f"{op} last state only", op, outputs=("", "y_h", ""), direction="bidirectional")
    recurrent(f"{op} clip", op, clip=0.3, direction="reverse")
    recurrent(f"{op} many steps", op, steps=80)
    names = {"LSTM": ["HardSigmoid", "Relu", "HardSigmoid"], "GRU": ["HardSigmoid", "Softsign"], "RNN": ["LeakyRelu"]}[op]
    recurrent(f"{op} activations", op, activations=names)
    names = {"LSTM": ["LeakyRelu", "ScaledTanh", "Softplus", "Sigmoid", "ThresholdedRelu", "Elu"],
             "GRU": ["Sigmoid", "ScaledTanh", "Affine", "Elu"], "RNN": ["ThresholdedRelu", "Affine"]}[op]
    recurrent(f"{op} activations with parameters", op, activations=names, activation_alpha=[0.5, 0.25, 0.75, 0.125],
              activation_beta=[0.5, 0.25], direction="bidirectional")
for direction in ("forward", "bidirectional"):
    recurrent(f"LSTM {direction} peephole", "LSTM", peephole=True, direction=direction)
    recurrent(f"LSTM {direction} input_forget", "LSTM", input_forget=1, peephole=True, direction=direction)
    recurrent(f"GRU {direction} linear_before_reset", "GRU", linear_before_reset=1, direction=direction)
    recurrent(f"GRU {direction} linear_before_reset lengths", "GRU", linear_before_reset=1, direction=direction, lengths=[2, 3])
for direction in ("forward", "bidirectional"):
    recurrent(f"GRU {direction} linear_before_reset many steps", "GRU", linear_before_reset=1, steps=80, direction=direction)
    recurrent(f"LSTM {direction} lengths many steps", "LSTM", steps=80, lengths=[70, 80], direction=direction, run_time=True)
recurrent("GRU linear_before_reset many steps, last state only", "GRU", linear_before_reset=1, steps=80, outputs=("", "y_h"))
recurrent("GRU linear_before_reset clip", "GRU", linear_before_reset=1, clip=0.3)
