"""Graphs, programs and captured references as bytes, for the way between processes.

What it does: writes a value made of Kernelwright's own frozen dataclasses and enums, tuples, lists, dicts and plain literals as
MessagePack, each shared node once, and rebuilds it by calling the same classes. Equal sharing gives equal bytes.
What it does not do: run anything that the bytes name (it is not pickle): a class outside `_HOMES`, or a malformed message, is
a ValueError. Called on both ends of a worker's pipe and by the archive; imports no torch.
"""

from __future__ import annotations

import dataclasses
import importlib
from enum import Enum
from typing import Any

import msgspec

_HOMES = {
    "kernelwright.ir.expr", "kernelwright.ir.graph", "kernelwright.ir.tile", "kernelwright.ir.schedule",
    "kernelwright.records", "kernelwright.capture.captured",
}  # fmt: skip
_LITERALS = (bool, int, float, str, bytes)
_TUPLE, _LIST, _DICT, _NODE, _ENUM = range(5)  # what an array in the message is, by its first element


def dumps(value: object) -> bytes:
    """`value` as bytes. Raises ValueError for what is not ours or plain."""
    writer = _Writer()
    root = writer.write(value)
    return msgspec.msgpack.encode([writer.classes, writer.nodes, root])


def loads(data: bytes) -> Any:
    """The value in `data`. Raises ValueError where it is not what `dumps` writes."""
    try:
        classes, nodes, root = msgspec.msgpack.decode(data, type=tuple[list[str], list[list[Any]], Any])
    except msgspec.DecodeError as error:
        raise ValueError(f"not a Kernelwright message: {error}") from error
    reader = _Reader([_class(path) for path in classes])
    try:
        for node in nodes:
            reader.nodes.append(reader.build(node))
        return reader.read(root)
    except (TypeError, IndexError, KeyError, RecursionError) as error:
        raise ValueError(f"a malformed Kernelwright message: {error}") from error


class _Writer:
    """The classes and the nodes written so far; children come before their parents."""

    def __init__(self) -> None:
        self.classes: list[str] = []
        self.nodes: list[list[Any]] = []
        self._class_ids: dict[type, int] = {}
        self._node_ids: dict[int, int] = {}
        self._alive: list[object] = []

    def write(self, value: object) -> Any:
        if value is None or type(value) in _LITERALS:
            return value
        if isinstance(value, tuple):
            return [_TUPLE, *(self.write(v) for v in value)]
        if isinstance(value, list):
            return [_LIST, *(self.write(v) for v in value)]
        if isinstance(value, dict):
            return [_DICT, *(self.write(part) for item in value.items() for part in item)]
        if isinstance(value, Enum):
            return [_ENUM, self._class_id(type(value)), self.write(value.value)]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return [_NODE, self._node(value)]
        raise ValueError(f"a {type(value).__name__} can't be sent")

    def _node(self, value: Any) -> int:
        known = self._node_ids.get(id(value))
        if known is None:
            fields = [self.write(getattr(value, f.name)) for f in dataclasses.fields(value)]
            self.nodes.append([self._class_id(type(value)), *fields])
            self._alive.append(value)
            known = self._node_ids[id(value)] = len(self.nodes) - 1
        return known

    def _class_id(self, kind: type) -> int:
        if kind not in self._class_ids:
            path = f"{kind.__module__}:{kind.__name__}"
            _class(path)
            self._class_ids[kind] = len(self.classes)
            self.classes.append(path)
        return self._class_ids[kind]


class _Reader:
    """The nodes rebuilt so far."""

    def __init__(self, classes: list[type]) -> None:
        self.classes = classes
        self.nodes: list[Any] = []

    def build(self, node: list[Any]) -> Any:
        kind, *fields = node
        return self.classes[kind](*(self.read(f) for f in fields))

    def read(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        kind, *rest = value
        if kind == _NODE:
            return self.nodes[rest[0]]
        if kind == _ENUM:
            return self.classes[rest[0]](self.read(rest[1]))
        parts = [self.read(part) for part in rest]
        if kind == _TUPLE:
            return tuple(parts)
        if kind == _LIST:
            return parts
        if kind == _DICT:
            return dict(zip(parts[::2], parts[1::2], strict=True))
        raise ValueError(f"unknown form {kind!r}")


def _class(path: str) -> type:
    """The class at "module:name", if it is a dataclass or an enum that one of our data modules defines."""
    module, _, name = path.partition(":")
    found = getattr(importlib.import_module(module), name, None) if module in _HOMES else None
    if isinstance(found, type) and found.__module__ == module and (dataclasses.is_dataclass(found) or issubclass(found, Enum)):
        return found
    raise ValueError(f"{path} is not a class that may be sent")
