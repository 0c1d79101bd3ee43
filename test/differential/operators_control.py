"""Random nodes with subgraphs: If, Loop, Scan. Subgraphs use names of the whole graph, so that they can capture outer values."""
import numpy as np

from graph import Unfit, wire

GENTLE = ("Tanh", "Sigmoid", "Sin", "Neg", "Abs", "Relu", "Softsign", "Identity", "HardSigmoid")  # |f(x)| <= max(|x|, 1)


class Body:
    """The nodes of a subgraph, with its inputs and outputs in order."""

    def __init__(self, g):
        self.g, self.nodes, self.inputs, self.outputs = g, [], [], []

    def input(self, kind, shape):
        name = self.g.name("b")
        self.inputs.append(wire.value_info(name, {"f": wire.FLOAT, "l": wire.INT64, "b": wire.BOOL}[kind], shape))
        return name

    def make(self, op, *inputs, **attributes):
        name = self.g.name("b")
        self.nodes.append(wire.node(op, list(inputs), [name], **attributes))
        return name

    def chain(self, name, most=3):
        """A chain of operations on a value that keep its shape and a range within 1 or its own."""
        for _ in range(self.g.integer(0, most)):
            name = self.make(self.g.one_of(*GENTLE), name)
        return name

    def output(self, name, kind, shape):
        name = self.make("Identity", name)  # an output of a subgraph must be neither one of its inputs nor an outer value
        self.outputs.append(wire.value_info(name, {"f": wire.FLOAT, "l": wire.INT64, "b": wire.BOOL}[kind], shape))

    def graph(self):
        return (wire.graph(self.nodes, self.inputs, self.outputs, name="body"),)


def if_(g, op):
    x = g.pick(rank=(1, 4))
    y = g.input("f", x.shape)
    condition = g.scalar("b", g.chance(0.5)) if g.chance(0.3) else g.input("b", () if g.chance(0.7) else (1,), 0, 1)
    turn = x.rank > 1 and g.chance(0.3)
    shape = x.shape[::-1] if turn else x.shape
    branches, both = [], g.integer(1, 2)
    for _ in range(2):
        branch = Body(g)
        for _ in range(both):
            name = branch.chain(g.one_of(x, y).name)
            if g.chance(0.4):
                name = branch.make("Mul", name, branch.chain(y.name, 1))
            branch.output(branch.make("Transpose", name) if turn else name, "f", shape)
        branches.append(branch.graph())
    bound = max(x.bound, 1, y.bound) * max(y.bound, 1)
    g.node(op, [condition], *[("f", shape, -bound, bound, False)] * both, then_branch=branches[0], else_branch=branches[1])
    x.used = y.used = True


def loop(g, op):
    x = g.pick(rank=(0, 3), low=-4, high=4)
    start = g.input("f", x.shape)
    trips, stop = g.integer(1, 4), g.integer(1, 4)
    body = Body(g)
    i, going = body.input("l", ()), body.input("b", ())
    states = [body.input("f", x.shape) for _ in range(g.integer(1, 2))]
    early = g.chance(0.4)  # the condition for the next iteration depends on the iteration number
    until = g.scalar("l", stop).name
    body.output(body.make("Less", i, until) if early else going, "b", ())
    runs = min(trips, stop + 1) if early else trips
    moved = [body.make("Add", body.chain(s), body.chain(x.name, 1)) for s in states]
    if len(moved) > 1 and g.chance(0.3):
        moved.reverse()
    for name in moved:
        body.output(name, "f", x.shape)
    scans = g.integer(0, 2)
    for _ in range(scans):
        body.output(body.chain(g.one_of(*moved)), "f", x.shape)
    bound = (x.bound + 4) * (trips + 1)
    count = g.scalar("l", trips) if g.chance(0.6) else g.given("l", np.array(trips))
    if early and g.chance(0.3):
        count, runs = None, stop + 1
    results = [("f", x.shape, -bound, bound, False)] * len(states) + [("f", (runs, *x.shape), -bound, bound, False)] * scans
    made = g.node(op, [count, g.scalar("b", True) if g.chance(0.6) or count is None else None, *[start] * len(states)], *results,
                  body=body.graph())
    x.used = True
    if scans and (early or count is None or count.constant is None):
        g.unknown(made[len(states):])


def scan(g, op):
    if g.opset < 9:
        raise Unfit
    x = g.pick(rank=(2, 4), low=-4, high=4)
    axis = g.axis(x.rank)
    length = x.shape[axis]
    item = [d for i, d in enumerate(x.shape) if i != axis % x.rank]
    others = [g.input("f", x.shape) for _ in range(g.integer(0, 1))]
    start = g.input("f", item)
    body = Body(g)
    state = body.input("f", item)
    items = [body.input("f", item) for _ in [x, *others]]
    moved = body.make("Add", body.chain(state), body.chain(items[0], 1))
    for name in items[1:]:
        moved = body.make("Sub", moved, body.chain(name, 1))
    body.output(moved, "f", item)
    scans, outputs = g.integer(1, 2), []
    bound = (x.bound + 4) * (length + 1)
    out_axes = [g.axis(x.rank) if g.chance(0.4) else 0 for _ in range(scans)]
    for at in out_axes:
        body.output(body.chain(g.one_of(moved, state)), "f", item)
        shape = list(item)
        shape.insert(at % x.rank, length)
        outputs.append(("f", shape, -bound, bound, False))
    attributes = g.some(scan_input_directions=[g.integer(0, 1) for _ in items],
                        scan_output_directions=[g.integer(0, 1) for _ in out_axes])
    if axis % x.rank or g.chance(0.3):
        attributes["scan_input_axes"] = [axis] * len(items)
    if any(out_axes):
        attributes["scan_output_axes"] = out_axes
    g.node(op, [start, x, *others], ("f", item, -bound, bound, False), *outputs, body=body.graph(), num_scan_inputs=len(items),
           **attributes)


ROWS = {"If": if_, "Loop": loop, "Scan": scan}
