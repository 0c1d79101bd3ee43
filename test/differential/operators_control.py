"""Random nodes with graphs inside: If, Loop, Scan. A body is written with names of the whole graph, so that it sees the values
outside."""
import numpy as np

from graph import wire


def body(nodes, inputs, outputs):
    return (wire.graph(nodes, inputs, outputs, name="body"),)


def if_(g, op):
    x = g.pick(rank=(1, 3))
    condition = g.constant(np.array(g.chance(0.5))) if g.chance(0.4) else g.input("b", (), 0, 1)
    branches = []
    for inner in ("Relu", "Neg"):
        y = g.name("v")
        branches.append(body([wire.node(inner, [x.name], [y])], [], [wire.value_info(y, wire.FLOAT, x.shape)]))
    g.node(op, [condition], ("f", x.shape, -x.bound, x.bound, x.exact), then_branch=branches[0], else_branch=branches[1])
    x.used = True


def loop(g, op):
    x = g.pick(rank=(1, 3), low=-4, high=4)
    trips = g.integer(1, 3)
    i, cond_in, state, cond_out, moved, scanned = [g.name("v") for _ in range(6)]
    inner = body([wire.node("Identity", [cond_in], [cond_out]), wire.node("Add", [state, x.name], [moved]),
                  wire.node("Identity", [moved], [scanned])],
                 [wire.value_info(i, wire.INT64, []), wire.value_info(cond_in, wire.BOOL, []),
                  wire.value_info(state, wire.FLOAT, x.shape)],
                 [wire.value_info(cond_out, wire.BOOL, []), wire.value_info(moved, wire.FLOAT, x.shape),
                  wire.value_info(scanned, wire.FLOAT, x.shape)])
    bound = x.bound * (trips + 1)
    g.node(op, [g.constant(np.array(trips, "<i8")), g.constant(np.array(True)), x], ("f", x.shape, -bound, bound, x.exact),
           ("f", (trips, *x.shape), -bound, bound, x.exact), body=inner)


def scan(g, op):
    x = g.pick(rank=(2, 3), low=-4, high=4)
    start = g.input("f", x.shape[1:])
    state, item, moved, scanned = [g.name("v") for _ in range(4)]
    inner = body([wire.node("Add", [state, item], [moved]), wire.node("Identity", [moved], [scanned])],
                 [wire.value_info(n, wire.FLOAT, x.shape[1:]) for n in (state, item)],
                 [wire.value_info(n, wire.FLOAT, x.shape[1:]) for n in (moved, scanned)])
    bound = x.bound * x.shape[0] + 2
    g.node(op, [start, x], ("f", x.shape[1:], -bound, bound, x.exact), ("f", x.shape, -bound, bound, x.exact), body=inner,
           num_scan_inputs=1, scan_input_directions=[g.integer(0, 1)])


ROWS = {"If": if_, "Loop": loop, "Scan": scan}
