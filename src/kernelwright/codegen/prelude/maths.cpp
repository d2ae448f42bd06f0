// Errors are in units of float32's last place, as tests/codegen/test_maths.py measures them (worst of AVX2 and portable).

//@ kw_libm: kw_lanes
// Lane by lane through libm.
#define KW_LIBM(x, fn) kw_lanes<V>([&](long l) { return fn(x[l]); })

//@ kw_pow2:
// 2^n for -126 <= n <= 127.
template <class V> KW_INLINE V kw_pow2(kw_ints<V> n) { return (V)((n + 127) << 23); }

//@ kw_exp: kw_pow2 kw_scalar kw_libm
// x = n ln 2 + r with |r| <= ln 2 / 2; a polynomial in r; scaled in two steps so that denormals come out right.
// Measured: at most 1.0 ulp.
template <class V> KW_INLINE V kw_exp(V x) {
  if constexpr (sizeof(x[0]) == 8) return KW_LIBM(x, __builtin_exp);
  else {
    x = x > 89.0f ? V{} + 89.0f : x;
    x = x < -104.0f ? V{} - 104.0f : x;
    const V shifted = x * 0x1.715476p+0f + 0x1.8p23f;  // the integer n in the low bits
    const kw_ints<V> n = (kw_ints<V>)shifted - 0x4b400000;
    const V k = shifted - 0x1.8p23f;
    const V r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
    V p = 8.3332676e-3f + r * (1.3946221e-3f + r * 1.99166937e-4f);
    p = 0.5f + r * (0.16666667f + r * (4.1666268e-2f + r * p));
    p = 1.0f + (r + (r * r) * p);
    const kw_ints<V> half = n >> 1;
    return p * kw_pow2<V>(half) * kw_pow2<V>(n - half);
  }
}
KW_SCALAR(kw_exp)

//@ kw_expm1: kw_pow2 kw_scalar kw_libm
// As exp, with 2^n (e^r - 1) + (2^n - 1), computed at half the scale so that 2^128 is not needed.
// Measured: at most 1.5 ulp.
template <class V> KW_INLINE V kw_expm1(V x) {
  if constexpr (sizeof(x[0]) == 8) return KW_LIBM(x, __builtin_expm1);
  else {
    const V x0 = x;
    x = x > 89.0f ? V{} + 89.0f : x;
    x = x < -20.0f ? V{} - 20.0f : x;
    const V shifted = x * 0x1.715476p+0f + 0x1.8p23f;
    const kw_ints<V> n = (kw_ints<V>)shifted - 0x4b400000;
    const V k = shifted - 0x1.8p23f;
    const V r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
    V p = 8.3332676e-3f + r * (1.3946221e-3f + r * 1.99166937e-4f);
    p = 0.5f + r * (0.16666667f + r * (4.1666268e-2f + r * p));
    p = r + (r * r) * p;
    const V scale = kw_pow2<V>(n - 1);
    const V y = 2.0f * (p * scale + (scale - 0.5f));
    return x0 == 0 ? x0 : y;
  }
}
KW_SCALAR(kw_expm1)

//@ kw_log_parts: kw_convert
// x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); the value is log(1 + f) - f, and e and f are given back.
template <class V> KW_INLINE V kw_log_parts(V x, V& e, V& f) {
  using I = kw_ints<V>;
  const auto tiny = x < 0x1p-126f;
  const V y = tiny ? x * 0x1p23f : x;
  const I bits = (I)y - 0x3f3504f3;  // sqrt(1/2)
  e = kw_convert<V>(bits >> 23) - (tiny ? V{} + 23.0f : V{});
  f = (V)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  V p = -0.11675628f + f * 6.746552e-2f;
  p = -0.12405595f + f * (0.1188819f + f * p);
  p = -0.16667995f + f * (0.14219549f + f * p);
  p = 0.33333313f + f * (-0.2500001f + f * (0.20002119f + f * p));
  const V square = f * f;
  return square * (f * p - 0.5f);
}
// The values that have no mantissa to speak of: 0, negative numbers, infinity, NaN.
template <class V> KW_INLINE V kw_log_special(V x, V y) {
  y = x == __builtin_inff() ? x : y;
  y = x == 0 ? V{} - __builtin_inff() : y;
  return x >= 0 ? y : V{} + __builtin_nanf("");
}

//@ kw_log: kw_log_parts kw_scalar kw_libm
// Measured: at most 0.9 ulp.
template <class V> KW_INLINE V kw_log(V x) {
  if constexpr (sizeof(x[0]) == 8) return KW_LIBM(x, __builtin_log);
  else {
    V e, f;
    const V rest = kw_log_parts(x, e, f);
    return kw_log_special(x, e * 0x1.62e4p-1f + (f + (rest + e * 0x1.7f7d1cp-20f)));
  }
}
KW_SCALAR(kw_log)

//@ kw_log2: kw_log_parts kw_scalar kw_libm
// Measured: at most 1.1 ulp.
template <class V> KW_INLINE V kw_log2(V x) {
  if constexpr (sizeof(x[0]) == 8) return KW_LIBM(x, __builtin_log2);
  else {
    V e, f;
    const V rest = kw_log_parts(x, e, f);
    const V high = (V)((kw_ints<V>)f & ~0xfff);  // 1.4426 = 0x1.71p0 + a rest, so that the largest product is exact
    const V low = (f - high) + rest;
    const V y = (e + high * 0x1.71p+0f) + (low * 0x1.71p+0f + (low + high) * 0x1.51d94ap-10f);
    return kw_log_special(x, y);
  }
}
KW_SCALAR(kw_log2)

//@ kw_log1p: kw_log kw_scalar kw_libm
// log(u) of the rounded u = 1 + x, and what the rounding lost. Measured: at most 1.3 ulp.
template <class V> KW_INLINE V kw_log1p(V x) {
  if constexpr (sizeof(x[0]) == 8) return KW_LIBM(x, __builtin_log1p);
  else {
    const V u = 1.0f + x;
    const V lost = (x - (u - 1.0f)) / u;
    const auto exact = (u == 0) | (u == __builtin_inff());
    const V y = kw_log(u) + (exact ? V{} : lost);
    return x == 0 ? x : y;
  }
}
KW_SCALAR(kw_log1p)

//@ kw_sigmoid: kw_exp kw_scalar
// Measured: at most 2.4 ulp, as PyTorch's.
template <class V> KW_INLINE V kw_sigmoid(V x) { return 1 / (1 + kw_exp(-x)); }
KW_SCALAR(kw_sigmoid)

//@ kw_exp_near: kw_pow2
// As exp, for -87 <= x <= 88 only.
template <class V> KW_INLINE V kw_exp_near(V x) {
  const V shifted = x * 0x1.715476p+0f + 0x1.8p23f;
  const V k = shifted - 0x1.8p23f;
  const V r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
  V p = 8.3332676e-3f + r * (1.3946221e-3f + r * 1.99166937e-4f);
  p = 0.5f + r * (0.16666667f + r * (4.1666268e-2f + r * p));
  p = 1.0f + (r + (r * r) * p);
  return p * kw_pow2<V>((kw_ints<V>)shifted - 0x4b400000);
}

//@ kw_tanh: kw_exp_near kw_abs kw_scalar kw_libm
// x + x^3 P(x^2) for |x| < 0.65, else 1 - 2 / (exp(2|x|) + 1) with x's sign.
// Measured: at most 1.3 ulp.
template <class V> KW_INLINE V kw_tanh(V x) {
  if constexpr (sizeof(x[0]) == 8) return KW_LIBM(x, __builtin_tanh);
  else {
    const V z = x * x;
    V p = 2.166634e-2f + z * (-8.09196e-3f + z * 2.06466e-3f);
    p = -0.3333333f + z * (0.13333158f + z * (-5.394056e-2f + z * p));
    const V small = x + (x * z) * p;
    V size = kw_abs(x);
    size = size > 10.0f ? V{} + 10.0f : size;
    const V large = 1.0f - 2.0f / (kw_exp_near(size + size) + 1.0f);
    const kw_ints<V> sign = (kw_ints<V>)x & (kw_ints<V>)(-V{});
    return size < 0.65f ? small : (V)((kw_ints<V>)large | sign);
  }
}
KW_SCALAR(kw_tanh)

//@ kw_erf: kw_exp_near kw_abs kw_scalar kw_libm
// x + x P(x^2) for |x| < 1, else 1 - exp(-Q(|x|)) with x's sign. Measured: at most 1.3 ulp.
template <class V> KW_INLINE V kw_erf(V x) {
  if constexpr (sizeof(x[0]) == 8) return KW_LIBM(x, __builtin_erf);
  else {
    const V z = x * x;
    V p = 5.18953519e-3f + z * (-8.02083995e-4f + z * 7.88911507e-5f);
    p = 1.12836002e-1f + z * (-2.68544445e-2f + z * p);
    p = 1.28379166e-1f + z * (-3.76126271e-1f + z * p);
    V t = kw_abs(x);
    const V small = x + x * p;
    const auto near = t < 1.0f;
    t = t > 4.0f ? V{} + 4.0f : t;
    V q = -2.9995603e-3f + t * 1.9150624e-4f;
    q = -1.03567039e-1f + t * (2.20520718e-2f + t * q);
    q = -2.56424456e-4f + t * (-1.12742618f + t * (-6.37599878e-1f + t * q));
    const V large = 1.0f - kw_exp_near(q);
    const kw_ints<V> sign = (kw_ints<V>)x & (kw_ints<V>)(-V{});
    return near ? small : (V)((kw_ints<V>)large | sign);
  }
}
KW_SCALAR(kw_erf)

//@ kw_trig: kw_convert kw_libm kw_abs
// sin(x + quarter * pi / 2). x = j pi/2 + r, reduced in double, which is exact enough for |x| <= 1e5.
// Measured for sin and cos: at most 1.5 ulp.
template <class V> KW_INLINE V kw_trig(V x, int quarter) {
  using D = vec<double, kw_count<V>>;
  const D wide = kw_convert<D>(x);
  const D shifted = wide * 0x1.45f306dc9c883p-1 + 0x1.8p52;
  const D j = shifted - 0x1.8p52;
  const V r = kw_convert<V>((wide - j * 0x1.921fb544p+0) - j * 0x1.0b4611a626331p-34);
  const kw_ints<V> turn = kw_convert<kw_ints<V>>(kw_convert<V>(j)) + quarter;
  const V z = r * r;
  const V sine = r + r * z * (-1.6666655e-1f + z * (8.33217e-3f + z * -1.9517e-4f));
  const V cosine = 1.0f + z * (-0.5f + z * (4.16666467e-2f + z * (-1.38873614e-3f + z * 2.44377258e-5f)));
  const V y = (turn & 1) != 0 ? cosine : sine;
  return (turn & 2) != 0 ? -y : y;
}
// Whether any lane is out of the range that kw_trig handles (NaN and infinity included).
template <class V> KW_INLINE bool kw_trig_far(V x) {
  const auto far = ~(kw_abs(x) <= 1e5f);
  bool any = false;
  for (int l = 0; l < kw_count<V>; ++l) any |= far[l] != 0;
  return any;
}

//@ kw_sin: kw_trig kw_scalar
template <class V> KW_INLINE V kw_sin(V x) {
  if constexpr (sizeof(x[0]) == 8) return KW_LIBM(x, __builtin_sin);
  else {
    if (__builtin_expect(kw_trig_far(x), 0)) return KW_LIBM(x, __builtin_sinf);
    return kw_trig(x, 0);
  }
}
KW_SCALAR(kw_sin)

//@ kw_cos: kw_trig kw_scalar
template <class V> KW_INLINE V kw_cos(V x) {
  if constexpr (sizeof(x[0]) == 8) return KW_LIBM(x, __builtin_cos);
  else {
    if (__builtin_expect(kw_trig_far(x), 0)) return KW_LIBM(x, __builtin_cosf);
    return kw_trig(x, 1);
  }
}
KW_SCALAR(kw_cos)

//@ kw_pow: kw_lanes
KW_INLINE float kw_pow(float a, float b) { return __builtin_powf(a, b); }
KW_INLINE double kw_pow(double a, double b) { return __builtin_pow(a, b); }
template <class T> KW_INLINE T kw_pow_int(T a, T b) {
  if (b < 0) return (T)(a == 1 ? 1 : a == (T)-1 ? ((b & 1) ? -1 : 1) : 0);
  unsigned long result = 1, base = (unsigned long)a;
  for (; b; b = (T)(b >> 1), base *= base)
    if (b & 1) result *= base;
  return (T)result;
}
KW_INLINE i64 kw_pow(i64 a, i64 b) { return kw_pow_int(a, b); }
KW_INLINE i32 kw_pow(i32 a, i32 b) { return kw_pow_int(a, b); }
KW_INLINE i16 kw_pow(i16 a, i16 b) { return kw_pow_int(a, b); }
KW_INLINE i8 kw_pow(i8 a, i8 b) { return kw_pow_int(a, b); }
KW_INLINE u8 kw_pow(u8 a, u8 b) { return kw_pow_int(a, b); }
template <class V> KW_INLINE V kw_pow(V a, V b) {
  return kw_lanes<V>([&](long l) { return kw_pow((kw_element<V>)a[l], (kw_element<V>)b[l]); });
}

//@ kw_atan2: kw_lanes
KW_INLINE float kw_atan2(float a, float b) { return __builtin_atan2f(a, b); }
KW_INLINE double kw_atan2(double a, double b) { return __builtin_atan2(a, b); }
template <class V> KW_INLINE V kw_atan2(V a, V b) {
  return kw_lanes<V>([&](long l) { return kw_atan2((kw_element<V>)a[l], (kw_element<V>)b[l]); });
}
