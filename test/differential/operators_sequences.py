"""Random nodes on sequences, which only make sense together: a sequence is constructed, modified and converted back to tensors."""
import numpy as np

from graph import TYPES
from operators_control import Body


def program(g, op):
    x = g.pick(g.one_of("f", "f", "l"), rank=(1, 3))
    axis = g.axis(x.rank)

    def another():
        shape = [g.integer(1, 3) if i == axis % x.rank and g.chance(0.5) else d for i, d in enumerate(x.shape)]
        return g.either(x.kind, shape, *g.ends(x.kind, -2, 2), constant=0.3)

    if op == "SplitToSequence" or (g.chance(0.2) and x.shape[axis] > 1):
        sequence, parts = split(g, x, axis)
    elif op == "SequenceEmpty" or g.chance(0.2):
        sequence = g.node("SequenceEmpty", [], **({"dtype": TYPES[x.kind][0]} if x.kind != "f" or g.chance(0.5) else {}))
        sequence, parts = g.node("SequenceInsert", [sequence, x]), [x.shape]
    else:
        made = [x] + [another() for _ in range(g.integer(0, 2))]
        sequence, parts = g.node("SequenceConstruct", made), [v.shape for v in made]
    steps = [op] if op in ("SequenceInsert", "SequenceErase") else []
    for step in steps + [g.one_of("SequenceInsert", "SequenceErase") for _ in range(g.integer(0, 2))]:
        if step == "SequenceErase" and len(parts) < 2:
            step = "SequenceInsert"
        last = len(parts) if step == "SequenceInsert" else len(parts) - 1
        at = g.integer(-len(parts), last)
        given = [] if g.chance(0.3) else [g.scalar(g.one_of("l", "i"), at)]
        place = at if given else last
        if step == "SequenceErase":
            parts.pop(place)
            sequence = g.node(step, [sequence, *given])
        else:
            new = another()
            parts.insert(place, new.shape)
            sequence = g.node(step, [sequence, new, *given])
    low, high = min(x.low, -4), max(x.high, 4)
    if op == "SequenceLength":
        return g.node(op, [sequence], ("l", (), len(parts), len(parts), True))
    if op == "SequenceAt" or (op != "ConcatFromSequence" and g.chance(0.5)):
        at = g.integer(-len(parts), len(parts) - 1)
        return g.node("SequenceAt", [sequence, g.scalar(g.one_of("l", "i"), at)], (x.kind, parts[at], low, high, x.exact))
    if len(set(parts)) == 1 and len(parts[0]) == x.rank and g.chance(0.4):
        at = g.integer(-x.rank - 1, x.rank)
        shape = list(parts[0])
        shape.insert(at % (x.rank + 1), len(parts))
        return g.node("ConcatFromSequence", [sequence], (x.kind, shape, low, high, x.exact), axis=at, new_axis=1)
    shape = list(x.shape)
    if len(parts[0]) < x.rank:  # a split without keepdims
        at = g.integer(-x.rank, x.rank - 1)
        shape = list(parts[0])
        shape.insert(at % x.rank, len(parts))
        return g.node("ConcatFromSequence", [sequence], (x.kind, shape, low, high, x.exact), axis=at, new_axis=1)
    shape[axis] = sum(p[axis] for p in parts)
    g.node("ConcatFromSequence", [sequence], (x.kind, shape, low, high, x.exact), axis=axis)


def split(g, x, axis):
    """Returns (sequence, shapes of its parts)."""
    n = x.shape[axis]
    shape = lambda size: tuple(size if i == axis % x.rank else d for i, d in enumerate(x.shape))  # noqa: E731
    how = g.integer(0, 2)
    if how == 0:
        return g.node("SplitToSequence", [x], axis=axis, **g.some(keepdims=1)), [shape(1)] * n
    if how == 1:
        size = g.integer(1, n)
        sizes = [size] * (n // size) + ([n % size] if n % size else [])
        return g.node("SplitToSequence", [x, g.scalar("l", size)], axis=axis), [shape(s) for s in sizes]
    cut = g.integer(1, n)
    sizes = [cut, n - cut] if cut < n else [n]
    return g.node("SplitToSequence", [x, g.constant(np.array(sizes, "<i8"))], axis=axis), [shape(s) for s in sizes]


def optional(g, op):
    x = g.pick(rank=(1, 3))
    held = g.node("Optional", [x])
    if op == "OptionalHasElement":
        return g.node(op, [held], ("b", (), 1, 1, True))
    g.node("OptionalGetElement", [held], ("f", x.shape, x.low, x.high, x.exact))


def sequence_map(g, op):
    x = g.pick(rank=(1, 3), low=-4, high=4)
    made = [x] + [g.input("f", x.shape) for _ in range(g.integer(0, 2))]
    body = Body(g)
    body.output(body.chain(body.input("f", x.shape)), "f", x.shape)
    mapped = g.node(op, [g.node("SequenceConstruct", made)], body=body.graph())
    axis = g.axis(x.rank)
    shape = [d * len(made) if i == axis % x.rank else d for i, d in enumerate(x.shape)]
    g.node("ConcatFromSequence", [mapped], ("f", shape, -4, 4, False), axis=axis)


ROWS = {
    **{op: program for op in ("SequenceConstruct", "SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength", "SequenceEmpty",
                              "ConcatFromSequence", "SplitToSequence")},
    **{op: optional for op in ("Optional", "OptionalGetElement", "OptionalHasElement")}, "SequenceMap": sequence_map,
}
