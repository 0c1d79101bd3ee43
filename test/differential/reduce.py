"""Reduces a random graph to the smallest part on which mlc and onnxruntime still disagree in the same way.

First, the earliest value that shows the difference is found; then as many as possible of the values before it become inputs,
with onnxruntime's elements. Without onnxruntime's results, only the first step is done.
"""
import dataclasses

import numpy as np

import graph


@dataclasses.dataclass
class Part:
    """A graph cut to some outputs and inputs; it is given to onnxruntime and mlc like a whole graph."""
    made: graph.Graph
    ends: list
    fed: dict  # Value: array

    def model(self):
        return self.made.model(self.ends, self.fed)

    def outputs(self):
        return self.ends

    def operators(self):
        """Operators of the remaining nodes, in order."""
        nodes, _ = self.made.part({v.name for v in self.ends}, {v.name for v in self.fed})
        return [graph.names(node)[0] for node in nodes]

    def feeds(self):
        return self.made.feeds(self.ends, self.fed)


def reduce(made, compute, same):
    """Reduces a graph. `compute` maps parts to [(outcome, detail, onnxruntime's arrays or None)]; `same` tells whether an
    (outcome, detail) is the one to reproduce. Returns (Part, outcome, detail), or None if no single value shows the difference."""
    produced = [v for v in made.values if v.constant is None and not any(v is i for i, _ in made.inputs)]
    parts = [Part(made, [v], {}) for v in produced]
    results = compute(parts)
    at = next((i for i, (outcome, detail, _) in enumerate(results) if same(outcome, detail)), None)
    if at is None:
        return None
    best = (parts[at], *results[at][:2])
    known = {v.name: (v, arrays[0]) for v, (_, _, arrays) in zip(produced[:at], results) if arrays}
    direct = next(graph.names(n)[1] for n in made.nodes if produced[at].name in graph.names(n)[2])
    everything = {v: a for name, (v, a) in known.items() if name in direct}
    for fed in [everything] + [{v: a for v, a in list(known.values())[:n]} for n in range(len(known) - 1, 0, -1)]:
        if not fed:
            continue
        part = Part(made, [produced[at]], {v: np.asarray(a) for v, a in fed.items()})
        outcome, detail, _ = compute([part])[0]
        if same(outcome, detail):
            return part, outcome, detail
    return best
