"""What is refused before it is built: policy and shape, not behaviour.

What it does: looks at a candidate's record and says in one line why it is not even compiled. What it does not do: read the
source for forbidden words (behaviour decides, in the sandbox). Called by `lab.lab`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.lab.protocol import Admitted
from kernelwright.records import Candidate, Manifest, Origin, TensorSpec
from kernelwright.sandbox.isolation import INSTALL_BUBBLEWRAP, Isolation, Strength
from kernelwright.sandbox.tensors import ArraySpec


def refusal(candidate: Candidate, admitted: Admitted, isolation: Isolation, allow_foreign: bool) -> str | None:
    """Why `candidate` is not built, or None."""
    foreign = candidate.origin is Origin.FOREIGN
    if foreign and isolation.strength is not Strength.BUBBLEWRAP and not allow_foreign:
        return f"foreign code needs bubblewrap ({INSTALL_BUBBLEWRAP}), or an explicit --no-sandbox"
    if candidate.manifest is None:
        return "it has no manifest: only candidates with the native entry can be run"
    return _mismatch(candidate.manifest, admitted)


def _mismatch(manifest: Manifest, admitted: Admitted) -> str | None:
    if [_plain(s) for s in manifest.inputs] != list(admitted.inputs):
        return f"it takes {_list([_plain(s) for s in manifest.inputs])}, but the reference is given {_list(admitted.inputs)}"
    known = {w.key: w.spec for w in admitted.weights}
    for weight in manifest.weights:
        if known.get(weight.key or weight.name) != _plain(weight):
            return f"it needs the weight {weight.key or weight.name} as {_list([_plain(weight)])}, which the reference has not"
    tensors = {s.name: _plain(s) for s in (*manifest.inputs, *manifest.weights, *manifest.constants, *manifest.outputs)}
    returned = [tensors.get(name) for name in manifest.returns]
    if returned != list(admitted.outputs):
        given = _list([r for r in returned if r is not None])
        return f"it returns {given or 'nothing'}, but the reference returns {_list(admitted.outputs)}"
    return None


def _plain(spec: TensorSpec) -> ArraySpec:
    return ArraySpec(spec.shape, spec.dtype)


def _list(specs: Sequence[ArraySpec]) -> str:
    return ", ".join(f"{s.dtype}[{', '.join(map(str, s.shape))}]" for s in specs)
