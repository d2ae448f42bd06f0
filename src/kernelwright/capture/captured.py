"""What capture gives: a Graph with what is needed to call it. Imports no torch, so that any process can hold one."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.ir.graph import Graph, Library, Role


@dataclass(frozen=True)
class Captured:
    """A captured reference.

    WEIGHT tensors of the graph are found by `Tensor.source` in the module's state_dict; CONSTANT ones (plain tensor
    attributes, literals, non-persistent buffers) have their data in `Graph.constants`. Scalar inputs are baked in and stand in
    `scalars` by position; `Graph.inputs` lists only the tensor inputs, in order, and `tensor_inputs` their positions.
    """

    graph: Graph
    tensor_inputs: tuple[int, ...]
    scalars: tuple[tuple[int, float | int | bool], ...] = ()

    @property
    def library_reasons(self) -> tuple[tuple[str, str], ...]:
        """Each operator that stays a library call, with the reason."""
        found = [(op.call.target, op.reason) for op in self.graph.ops if isinstance(op, Library)]
        return tuple(dict.fromkeys(found))

    @property
    def weights(self) -> tuple[str, ...]:
        """state_dict keys of the weights that the graph reads, in order."""
        return tuple(t.source for t in self.graph.tensors.values() if t.role is Role.WEIGHT and t.source is not None)
