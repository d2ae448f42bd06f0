"""Scalar expressions of the IR as C++ text, for one point or for one vector of points of a loop nest.

What it does: an `Emitter` turns an `Expr` into a `Value` (C++ text with its register type), appending named temporaries to
the scopes it was given: a value goes to the outermost scope in which it is defined, so invariants are hoisted.
What it does not do: loops, accumulators, stores' policy. Called by `cpp_nest`, `cpp_stage` and `cpp_contract`.

How another module uses it (the packed leaf's epilogue, for instance):

    lines: list[str] = []
    emitter = Emitter(context, [Scope(lines, frozenset(axes whose C++ variables are in scope))],
                      lanes=Lanes("j", "W"), acc=Value("acc", DType.F32, vector=True))
    value = emitter.value(op.finish)                 # statements needed go to `lines`
    lines.append(emitter.store(op.output, index, value))

With `lanes`, the variable `<axis>` holds lane 0's index and the text is for `W` (or the given width) lanes; `Lanes.part`
names a `long` count of valid lanes: loads and stores then touch only those (what the other lanes hold is arbitrary).
Without `lanes` the text is scalar. A `Value` with `vector=False` under `lanes` is the same for all lanes; `Emitter.splat`
widens it. `Emitter.cast` converts. `rename` gives the C++ text of an axis that is not simply its own name.
Registers hold F16 and BF16 as F32 (rounded when stored or cast), BOOL as C++ `bool`, or in vectors as 0 / -1 integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from kernelwright.codegen.cpp_context import C_TYPE, Context, identifier
from kernelwright.codegen.cpp_index import Linear, interval
from kernelwright.errors import UnsupportedError
from kernelwright.ir.expr import Acc, Axis, Call, Const, DType, Expr, Fn, Load, axes_in, children, dtype_of, walk

REGISTER = {DType.F16: DType.F32, DType.BF16: DType.F32}  # others are their own
LITERAL, ATOM, MUL, ADD, LOW = 4, 3, 2, 1, 0  # how tightly a text binds

INFIX = {Fn.ADD: ("+", ADD), Fn.SUB: ("-", ADD), Fn.MUL: ("*", MUL), Fn.DIV: ("/", MUL)}
COMPARE = {Fn.EQ: "==", Fn.NE: "!=", Fn.LT: "<", Fn.LE: "<=", Fn.GT: ">", Fn.GE: ">="}
BITWISE = {Fn.AND: "&", Fn.OR: "|", Fn.XOR: "^"}
SHIFT = {Fn.SHL: "<<", Fn.SHR: ">>"}
INT32 = range(-(2**31), 2**31)


def register(dtype: DType) -> DType:
    """The type in which registers hold a value of `dtype`."""
    return REGISTER.get(dtype, dtype)


@dataclass(frozen=True)
class Value:
    """C++ text of a value. `mask` is the lane size in bytes of a vector BOOL."""

    text: str
    dtype: DType
    vector: bool = False
    binds: int = ATOM
    mask: int = 0

    @property
    def lane_bytes(self) -> int:
        """Bytes of a lane in a register (0 for a scalar)."""
        return 0 if not self.vector else self.mask or self.dtype.bytes

    def at(self, binds: int) -> str:
        """The text, in parentheses where an operator of strength `binds` would tear it apart."""
        return self.text if self.binds >= binds else f"({self.text})"


@dataclass(frozen=True)
class Lanes:
    """The vector axis, the C++ constant with the number of lanes, and the name of the count of valid lanes, if partial."""

    axis: str
    width: str = "W"
    part: str | None = None


@dataclass
class Scope:
    """A place for statements. `axes` are the axes whose variables are in scope there (those of outer scopes included)."""

    lines: list[str]
    axes: frozenset[str]
    names: dict[Expr, Value] = field(default_factory=dict)


@dataclass
class Emitter:
    """Prints expressions at the innermost of `scopes`. `known` holds forwarded values by (tensor, index)."""

    context: Context
    scopes: list[Scope]
    lanes: Lanes | None = None
    acc: Value | None = None
    known: dict[Load, Value] = field(default_factory=dict)
    rename: dict[str, str] = field(default_factory=dict)
    true: frozenset[Expr] = frozenset()  # guards known to hold here
    lane_bytes: int = 0  # the widest vector lane that was printed
    counts: dict[Expr, int] = field(default_factory=dict)
    lane: str | None = None  # set while the text of one lane is printed: its number's name
    conditional: int = 0  # scopes from this one on are only entered under a condition
    lazy: int = 0  # > 0: no statement may be emitted (a branch that may not be evaluated)

    # -- entry points -------------------------------------------------------------------------------------------------

    def count(self, expr: Expr) -> None:
        """Note the uses in `expr`, so that what occurs twice gets a name. Call it for all expressions of a body first."""
        for e in walk(expr):
            self.counts[e] = self.counts.get(e, 0) + 1

    def value(self, expr: Expr) -> Value:
        """The value of `expr`; statements go to the scopes."""
        for scope in self.scopes:
            if self.lane is None and expr in scope.names:
                return self._note(scope.names[expr])
        if isinstance(expr, Const):
            return self.constant(expr.value, expr.dtype)
        if isinstance(expr, Axis):
            return self._axis(expr)
        if isinstance(expr, Acc):
            if self.acc is None:
                raise ValueError("an accumulator outside of a finish expression")
            return self._note(self.acc)
        if isinstance(expr, Load) and expr in self.known:
            return self._forwarded(self.known[expr])
        value = self._load(expr) if isinstance(expr, Load) else self._call(expr)
        return self._note(self._named(expr, value))

    def name(self, value: Value, stem: str = "t") -> Value:
        """Give `value` a name in the innermost scope (it is then cheap to repeat)."""
        if value.binds >= ATOM and value.text.isidentifier():
            return value
        return self._declare(value, self.scopes[-1], stem)

    def store(self, tensor: str, index: tuple[Expr, ...], value: Value, stream: bool = False) -> str:
        """The statement that stores `value` (cast to the tensor's dtype) at `index`."""
        dtype = self.context.tensor(tensor).dtype
        value = self.cast(value, register(dtype))
        form = self.context.offset(tensor, index)
        pointer = self.context.pointer(tensor)
        if self.lanes is None:
            return f"{pointer}[{self.linear(form)}] = {self._memory(value, dtype)};"
        value = self.splat(value)
        step = form.coefficient(self.lanes.axis)
        text = f"({value.text}) & 1" if dtype is DType.BOOL else value.text
        address = f"{pointer} + {self.linear(form)}"
        part = self.lanes.part
        self._access("kw_narrow", dtype)
        if step == 1:
            if part:
                return f"{self.context.use('kw_store_part')}({address}, {text}, {part});"
            if stream:
                return f"{self.context.use('kw_stream')}({address}, {text});"
            return f"{self.context.use('kw_store')}({address}, {text});"
        if step is None or step == 0:
            raise UnsupportedError(f"{tensor}: the vector axis must walk the output")
        count = part or self.lanes.width
        return f"{self.context.use('kw_store_stride')}({address}, {step}, {text}, {count});"

    # -- conversions --------------------------------------------------------------------------------------------------

    def constant(self, value: float | int | bool, dtype: DType) -> Value:
        """A literal."""
        dtype = register(dtype)
        if dtype is DType.BOOL:
            return Value("true" if value else "false", dtype, binds=LITERAL)
        if not dtype.is_float:
            number = int(value)
            text = f"{number}" if number in INT32 or dtype is not DType.I64 else f"{number}l"
            if number == -(2**63):
                text = "(-9223372036854775807l - 1)"
            return Value(text, dtype, binds=LITERAL if number >= 0 or text[0] == "(" else LOW)
        suffix = "f" if dtype is DType.F32 else ""
        if math.isnan(value):
            return Value(f"__builtin_nan{suffix}(\"\")", dtype)
        if math.isinf(value):
            return Value(f"{'-' if value < 0 else ''}__builtin_inf{suffix}()", dtype, binds=ATOM if value > 0 else LOW)
        text = _float_text(float(value), dtype)
        return Value(text, dtype, binds=LOW if text[0] == "-" else LITERAL)

    def type(self, dtype: DType, vector: bool) -> str:
        """The C++ type of a register value (a vector BOOL is vec<i32, W>: see Value.mask)."""
        dtype = register(dtype)
        if vector and self.lanes is not None:
            return f"vec<{C_TYPE[dtype] if dtype is not DType.BOOL else 'i32'}, {self.lanes.width}>"
        return "bool" if dtype is DType.BOOL else C_TYPE[dtype]

    def mask_type(self, lane_bytes: int) -> str:
        """The C++ type of a vector BOOL."""
        assert self.lanes is not None
        return f"vec<i{8 * lane_bytes}, {self.lanes.width}>"

    def splat(self, value: Value) -> Value:
        """The value in all lanes."""
        if value.vector or self.lanes is None or self.lane is not None:
            return value
        splat = self.context.use("kw_splat")
        if value.dtype is DType.BOOL:
            return self._note(Value(f"{splat}<{self.mask_type(4)}>(-(i32)({value.text}))", DType.BOOL, True, ATOM, 4))
        return self._note(Value(f"{splat}<{self.type(value.dtype, True)}>({value.text})", value.dtype, True))

    def cast(self, value: Value, dtype: DType) -> Value:
        """The value in the register type of `dtype` (F32 for F16 and BF16, not rounded)."""
        target = register(dtype)
        source = value.dtype
        if source is not target:
            value = self._cast_vector(value, target) if value.vector else self._cast_scalar(value, target)
        return value

    def round(self, value: Value, dtype: DType) -> Value:
        """An F32 register rounded to what F16 or BF16 can hold (other types: as it is)."""
        if dtype not in REGISTER:
            return value
        return Value(f"{self.context.use(f'kw_round_{dtype.value}')}({value.text})", value.dtype, value.vector)

    def _cast_scalar(self, value: Value, target: DType) -> Value:
        if target is DType.BOOL:
            return Value(f"{value.at(ADD)} != 0", target, binds=LOW)
        if value.binds == LITERAL and target is DType.I64:
            return replace(value, dtype=target)
        return Value(f"({C_TYPE[target]}){value.at(ATOM)}", target, binds=MUL)

    def _cast_vector(self, value: Value, target: DType) -> Value:
        if target is DType.BOOL:
            return Value(f"{value.at(ADD)} != 0", target, True, LOW, value.dtype.bytes)
        convert = self.context.use("kw_convert")
        if value.dtype is DType.BOOL:
            ints = DType.I64 if target.bytes == 8 else DType.I32
            value = Value(f"{self.mask(value, ints.bytes).at(ATOM)} & 1", ints, True, LOW)
            if target is ints:
                return value
        return Value(f"{convert}<{self.type(target, True)}>({value.text})", target, True)

    def mask(self, value: Value, lane_bytes: int) -> Value:
        """A BOOL as a vector mask of that lane size."""
        value = self.splat(value)
        if value.mask == lane_bytes:
            return value
        text = f"{self.context.use('kw_convert')}<{self.mask_type(lane_bytes)}>({value.text})"
        return Value(text, DType.BOOL, True, ATOM, lane_bytes)

    def _memory(self, value: Value, dtype: DType) -> str:
        if dtype in REGISTER:
            return f"{self.context.use('kw_to_f16' if dtype is DType.F16 else 'kw_to_bf16')}({value.text})"
        return value.text

    # -- leaves -------------------------------------------------------------------------------------------------------

    def linear(self, form: Linear) -> str:
        """C++ text of a linear form of axes (scalar, i64)."""
        parts = [(k, self.axis_text(a), ATOM) for a, k in sorted(form.terms, key=lambda t: (t[1] < 0, -abs(t[1])))]
        for k, e in form.opaque:
            value = self._scalar_index(e)
            parts.append((k, value.text, value.binds))
        text = ""
        for k, name, binds in parts:
            factor = name if binds >= MUL else f"({name})"
            piece = factor if abs(k) == 1 else f"{factor} * {abs(k)}"
            text += (" - " if k < 0 else " + " if text else "") + piece
        if form.constant or not text:
            text += f" {'-' if form.constant < 0 else '+'} {abs(form.constant)}" if text else str(form.constant)
        return text.strip()

    def axis_text(self, axis: str) -> str:
        """The C++ text of an axis (or of `<axis>_0`)."""
        return self.rename.get(axis, identifier(axis))

    def _scalar_index(self, expr: Expr) -> Value:
        """An I64 expression as scalar text (for lane 0 in vector text)."""
        if self.lanes is None or self.lane is not None:
            return self.value(expr)
        scalar = replace(self, lanes=None, known={k: v for k, v in self.known.items() if not v.vector})
        if self.lanes.axis in axes_in(expr):
            scalar.lazy += 1
        return scalar.value(expr)

    def _axis(self, expr: Axis) -> Value:
        text = self.axis_text(expr.name)
        if self.lanes is None or self.lane is not None or expr.name != self.lanes.axis:
            return Value(text, DType.I64, binds=ATOM if text.isidentifier() else LOW)
        bounds = self.context.ranges().get(expr.name)
        narrow = bounds is not None and bounds[1] + 64 in INT32
        kind = DType.I32 if narrow else DType.I64
        iota = self.context.use("kw_iota")
        return self._note(Value(f"{iota}<{self.type(kind, True)}>() + ({C_TYPE[kind]}){text}", kind, True, ADD))

    def _forwarded(self, value: Value) -> Value:
        if self.lane is not None and value.vector:
            text = f"{value.text}[{self.lane}]"
            return Value(f"{text} != 0", DType.BOOL, binds=LOW) if value.dtype is DType.BOOL else Value(text, value.dtype)
        return self._note(value)

    def _load(self, expr: Load) -> Value:
        form = self.context.offset(expr.tensor, expr.index)
        dtype = register(expr.dtype)
        pointer = self.context.pointer(expr.tensor)
        lanes = self.lanes
        if lanes is None or self.lane is not None or lanes.axis not in form.axes():
            text = f"{pointer}[{self.linear(form)}]"
            if expr.dtype in REGISTER:
                text = f"{self.context.use('kw_from_f16' if expr.dtype is DType.F16 else 'kw_from_bf16')}({text})"
            return Value(f"{text} != 0", dtype, binds=LOW) if dtype is DType.BOOL else Value(text, dtype)
        step = form.coefficient(lanes.axis)
        if step is None:
            return self.per_lane(expr)
        address = f"{pointer} + {self.linear(form)}"
        if step == 1:
            text = (
                f"{self._access('kw_load_part', expr.dtype)}<{lanes.width}>({address}, {lanes.part})" if lanes.part
                else f"{self._access('kw_load', expr.dtype)}<{lanes.width}>({address})"
            )  # fmt: skip
        elif step == 2 and not lanes.part and expr.dtype not in REGISTER:
            text = f"{self.context.use('kw_load_even')}<{lanes.width}>({address})"
        else:
            count = lanes.part or lanes.width
            text = f"{self._access('kw_load_stride', expr.dtype)}<{lanes.width}>({address}, {step}, {count})"
        if dtype is DType.BOOL:
            return Value(f"{self.context.use('kw_convert')}<{self.mask_type(4)}>({text}) != 0", dtype, True, LOW, 4)
        return Value(text, dtype, True)

    def _access(self, snippet: str, dtype: DType) -> str:
        """Note the use of a snippet that has parts of its own for 16-bit floats; returns its name."""
        if dtype in REGISTER:
            self.context.use(f"{snippet}@{dtype.value}")
        return self.context.use(snippet)

    def per_lane(self, expr: Expr) -> Value:
        """`expr` evaluated lane by lane: gathers, and loads under guards that differ between lanes."""
        assert self.lanes is not None
        lane, axis = self.context.fresh("l"), self.lanes.axis
        inner = replace(self, lane=lane, rename={**self.rename, axis: f"({self.axis_text(axis)} + {lane})"}, lazy=1)
        value = inner.value(expr)
        dtype = register(dtype_of(expr))
        element, kind = (C_TYPE[dtype], self.type(dtype, True)) if dtype is not DType.BOOL else ("i32", self.mask_type(4))
        text = value.text if dtype is not DType.BOOL else f"-(i32)({value.text})"
        head = f"{self.context.use('kw_lanes')}<{kind}>("
        count = f"{self.lanes.part}, " if self.lanes.part else ""
        return Value(f"{head}{count}[&](long {lane}) -> {element} {{ return {text}; }})", dtype, True,
                     mask=4 if dtype is DType.BOOL else 0)  # fmt: skip

    # -- calls --------------------------------------------------------------------------------------------------------

    def _call(self, expr: Call) -> Value:
        if expr.fn is Fn.SELECT:
            return self._select(expr)
        if expr.fn is Fn.CAST:
            value = self.cast(self.value(expr.args[0]), expr.dtype)
            return value if dtype_of(expr.args[0]) is expr.dtype else self.round(value, expr.dtype)
        args = [self.value(a) for a in expr.args]
        if expr.fn in COMPARE:
            return self._compare(COMPARE[expr.fn], self._same(self._narrowed(expr, args)))
        if expr.fn in (Fn.ISNAN, Fn.ISINF):
            return self._classify(expr.fn, args[0])
        if expr.fn is Fn.NOT or expr.fn in BITWISE:
            return self._logic(expr, args)
        return self._arithmetic(expr, args)

    def _arithmetic(self, expr: Call, args: list[Value]) -> Value:
        dtype = register(expr.dtype)
        vector = any(a.vector for a in args)
        if dtype is DType.I64 and vector and all(a.dtype is DType.I32 or not a.vector for a in args):
            bounds = interval(expr, self.context.ranges())
            if bounds is not None and bounds[0] in INT32 and bounds[1] + 64 in INT32:
                dtype = DType.I32
        args = [self.cast(a, dtype) for a in args]
        fn = expr.fn
        if fn in INFIX:
            sign, binds = INFIX[fn]
            left, right = args[0].at(binds), args[1].at(binds + (fn in (Fn.SUB, Fn.DIV) or args[1].binds == binds))
            return self._small(Value(f"{left} {sign} {right}", dtype, vector, binds))
        if fn is Fn.NEG:
            return self._small(Value(f"-{args[0].at(ATOM)}", dtype, vector, LOW))
        if fn in SHIFT:
            return self._small(Value(f"{args[0].at(ATOM)} {SHIFT[fn]} {args[1].at(ATOM)}", dtype, vector, LOW))
        if fn in (Fn.FLOORDIV, Fn.MOD) and not dtype.is_float and self._plain_division(expr):
            sign = "/" if fn is Fn.FLOORDIV else "%"
            return Value(f"{args[0].at(MUL)} {sign} {args[1].at(ATOM)}", dtype, vector, MUL)
        if vector:
            args = [self.splat(a) for a in args]
        if fn is Fn.RECIPROCAL:
            return Value(f"1 / {args[0].at(ATOM)}", dtype, vector, MUL)
        name = self.context.use(f"kw_{fn.value}")
        return self._small(Value(f"{name}({', '.join(_typed(a) for a in args)})", dtype, vector))

    def _small(self, value: Value) -> Value:
        """C++ widens small integers: cut a scalar result back."""
        if not value.vector and value.dtype in (DType.I16, DType.I8, DType.U8):
            return Value(f"({C_TYPE[value.dtype]}){value.at(ATOM)}", value.dtype, binds=MUL)
        return value

    def _plain_division(self, expr: Call) -> bool:
        ranges = self.context.ranges()
        a, b = (interval(e, ranges) for e in expr.args)
        return a is not None and b is not None and a[0] >= 0 and b[0] > 0

    def _narrowed(self, expr: Call, args: list[Value]) -> list[Value]:
        """An I64 scalar beside an I32 vector as I32, where its range allows it."""
        if not any(a.vector and a.dtype is DType.I32 for a in args):
            return args
        found = []
        for e, a in zip(expr.args, args, strict=True):
            bounds = None if a.vector or a.dtype is not DType.I64 else interval(e, self.context.ranges())
            fits = bounds is not None and bounds[0] in INT32 and bounds[1] in INT32
            found.append(self.cast(a, DType.I32) if fits else a)
        return found

    def _same(self, args: list[Value]) -> list[Value]:
        """Both operands in one type, the wider one."""
        order = [DType.BOOL, DType.U8, DType.I8, DType.I16, DType.I32, DType.I64, DType.F32, DType.F64]
        kinds = [a.dtype for a in args]
        if kinds[0] is kinds[1]:
            return args
        vectors = [a.dtype for a in args if a.vector]
        if len(vectors) == 1 and set(kinds) <= {DType.I32, DType.I64}:
            scalar = next(a for a in args if not a.vector)
            if scalar.binds == LITERAL and int(scalar.text.rstrip("l")) in INT32:
                return [self.cast(a, vectors[0]) for a in args]
        target = max(kinds, key=order.index)
        return [self.cast(a, target) for a in args]

    def _compare(self, sign: str, args: list[Value]) -> Value:
        vector = any(a.vector for a in args)
        if vector and args[0].dtype is DType.BOOL:
            args = self._masks(args)
        left, right = args[0].at(ADD), args[1].at(ADD)
        size = max(a.lane_bytes for a in args)
        return Value(f"{left} {sign} {right}", DType.BOOL, vector, LOW, size if vector else 0)

    def _masks(self, args: list[Value]) -> list[Value]:
        size = next(a.mask for a in args if a.vector)
        return [self.mask(a, size) for a in args]

    def _classify(self, fn: Fn, value: Value) -> Value:
        size = value.lane_bytes
        if not value.dtype.is_float:
            return self.constant(False, DType.BOOL)
        if fn is Fn.ISNAN:
            value = self.name(value) if not self.lazy else value
            return Value(f"{value.at(ADD)} != {value.at(ADD)}", DType.BOOL, value.vector, LOW, size)
        infinite = self.constant(math.inf, value.dtype).text
        absolute = self.context.use("kw_abs")
        return Value(f"{absolute}({value.text}) == {infinite}", DType.BOOL, value.vector, LOW, size)

    def _logic(self, expr: Call, args: list[Value]) -> Value:
        if expr.dtype is not DType.BOOL:
            args = [self.cast(a, register(expr.dtype)) for a in args]
            vector = any(a.vector for a in args)
            if expr.fn is Fn.NOT:
                return self._small(Value(f"~{args[0].at(ATOM)}", expr.dtype, vector, LOW))
            return self._small(Value(f"{args[0].at(ATOM)} {BITWISE[expr.fn]} {args[1].at(ATOM)}", expr.dtype, vector, LOW))
        args = [self.cast(a, DType.BOOL) for a in args]
        vector = any(a.vector for a in args)
        if expr.fn is Fn.NOT:
            return Value(f"{'~' if vector else '!'}{args[0].at(ATOM)}", DType.BOOL, vector, LOW, args[0].mask)
        if vector:
            args = self._masks(args)
            return Value(f"{args[0].at(ATOM)} {BITWISE[expr.fn]} {args[1].at(ATOM)}", DType.BOOL, True, LOW, args[0].mask)
        sign = {Fn.AND: "&&", Fn.OR: "||", Fn.XOR: "!="}[expr.fn]
        return Value(f"{args[0].at(ATOM)} {sign} {args[1].at(ATOM)}", DType.BOOL, False, LOW)

    def _select(self, expr: Call) -> Value:
        yes, no = expr.args[1:]
        condition = self.strip(expr.args[0])
        if condition is None:
            return self.value(yes)
        lanes = self.lanes if self.lane is None else None
        differs = lanes is not None and self.varies(condition)
        safe = self.context.safe(yes) and self.context.safe(no)
        if differs and not safe:
            return self.per_lane(expr)
        test = self.cast(self.value(condition), DType.BOOL)
        if not safe:
            self.lazy += 1
        branches = [self.value(yes), self.value(no)]
        if not safe:
            self.lazy -= 1
        dtype = register(expr.dtype)
        if dtype is DType.I64 and all(b.dtype in (DType.I32, DType.I64) for b in branches) and any(
            b.vector and b.dtype is DType.I32 for b in branches
        ):
            bounds = interval(expr, self.context.ranges())
            dtype = DType.I32 if bounds is not None and bounds[0] in INT32 and bounds[1] in INT32 else DType.I64
        branches = [self.cast(b, dtype) for b in branches]
        if test.vector or any(b.vector for b in branches):
            branches = [self.splat(b) for b in branches]
        if dtype is DType.BOOL and branches[0].vector:
            branches = self._masks(branches)
        if test.vector:
            test = self.mask(test, branches[0].lane_bytes)
        a, b = branches
        return Value(f"{test.at(ADD)} ? {a.at(ADD)} : {b.at(ADD)}", dtype, a.vector, LOW, a.mask)

    def strip(self, condition: Expr) -> Expr | None:
        """`condition` without the parts known to be true here; None where nothing is left."""
        if condition in self.true or (isinstance(condition, Const) and bool(condition.value)):
            return None
        if isinstance(condition, Call) and condition.fn is Fn.AND and condition.dtype is DType.BOOL:
            left, right = (self.strip(c) for c in condition.args)
            if left is None or right is None:
                return left or right
            return replace(condition, args=(left, right))
        return condition

    def varies(self, expr: Expr) -> bool:
        """True where lanes may differ in the value of `expr`."""
        if self.lanes is None:
            return False
        if isinstance(expr, Load) and expr in self.known:
            return self.known[expr].vector
        if isinstance(expr, Acc):
            return self.acc is not None and self.acc.vector
        if isinstance(expr, Axis):
            return expr.name == self.lanes.axis
        return any(self.varies(c) for c in children(expr))

    # -- temporaries --------------------------------------------------------------------------------------------------

    def _note(self, value: Value) -> Value:
        if self.lane is None:
            self.lane_bytes = max(self.lane_bytes, value.lane_bytes)
        return value

    def _named(self, expr: Expr, value: Value) -> Value:
        """A name for what is loaded, costly, used twice, or invariant in the innermost scope."""
        if self.lazy or self.lane is not None:
            return value
        home = self._home(expr)
        outer = home is not self.scopes[-1]
        loaded = isinstance(expr, Load)
        repeated = self.counts.get(expr, 0) > 1 and (value.vector or dtype_of(expr) is not DType.I64)
        hoisted = outer and (loaded or dtype_of(expr) is not DType.I64)
        if not (loaded or repeated or hoisted):
            return value
        named = self._declare(value, home, expr.tensor if isinstance(expr, Load) else "t")
        home.names[expr] = named
        return named

    def _home(self, expr: Expr) -> Scope:
        """The outermost scope in which everything that `expr` needs is in scope."""
        needs = axes_in(expr)
        local = any(isinstance(e, Acc) or (isinstance(e, Load) and e in self.known) for e in walk(expr))
        if local:
            return self.scopes[-1]
        open_scopes = self.scopes if self.context.safe(expr) else self.scopes[self.conditional :]
        return next((s for s in open_scopes if needs <= s.axes), self.scopes[-1])

    def _declare(self, value: Value, scope: Scope, stem: str) -> Value:
        name = self.context.fresh(identifier(stem) + "_")
        scope.lines.append(f"const auto {name} = {value.text};")
        return replace(value, text=name, binds=ATOM)


def _float_text(value: float, dtype: DType) -> str:
    if dtype is DType.F64:
        text = repr(value)
        return text if any(c in text for c in ".en") else text + ".0"
    import struct

    short = struct.unpack("f", struct.pack("f", value))[0] if abs(value) < 3.4028236e38 else value
    for digits in range(6, 18):
        text = f"{short:.{digits}g}"
        if struct.pack("f", float(text)) == struct.pack("f", short):
            break
    return (text if any(c in text for c in ".e") else text + ".0") + "f"


def _typed(value: Value) -> str:
    """A function's argument: an I64 literal says its type, or the overload would be ambiguous beside a long."""
    bare = value.dtype is DType.I64 and not value.vector and value.text.lstrip("-").isdigit()
    return f"{value.text}l" if bare else value.text
