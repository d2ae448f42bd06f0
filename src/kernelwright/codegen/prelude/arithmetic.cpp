//@ kw_scalar: kw_splat
// The scalar form of a vector function: the same arithmetic, so that both give the same result.
#define KW_SCALAR(fn)                                                                   \
  KW_INLINE float fn(float x) { return fn(kw_splat<vec<float, 4>>(x))[0]; }             \
  KW_INLINE double fn(double x) { return fn(kw_splat<vec<double, 2>>(x))[0]; }

//@ kw_abs:
template <class V> KW_INLINE V kw_abs(V x) {
  if constexpr (((kw_element<V>)0.5) != 0) return (V)((kw_ints<V>)x & ~((kw_ints<V>)(-V{})));
  else return x < 0 ? -x : x;
}
KW_INLINE float kw_abs(float x) { return __builtin_fabsf(x); }
KW_INLINE double kw_abs(double x) { return __builtin_fabs(x); }
KW_INLINE i64 kw_abs(i64 x) { return x < 0 ? (i64)(0ul - (unsigned long)x) : x; }
KW_INLINE i32 kw_abs(i32 x) { return x < 0 ? (i32)(0u - (unsigned)x) : x; }
KW_INLINE i16 kw_abs(i16 x) { return (i16)(x < 0 ? -x : x); }
KW_INLINE i8 kw_abs(i8 x) { return (i8)(x < 0 ? -x : x); }
KW_INLINE u8 kw_abs(u8 x) { return x; }

//@ kw_sign:
// -1, 0 or 1; 0 for NaN, as torch.sign.
template <class V> KW_INLINE V kw_sign(V x) { return x > 0 ? V{} + 1 : (x < 0 ? V{} - 1 : V{}); }
#define KW_SIGN(T) KW_INLINE T kw_sign(T x) { return (T)((x > 0) - (x < 0)); }
KW_SIGN(float) KW_SIGN(double) KW_SIGN(i64) KW_SIGN(i32) KW_SIGN(i16) KW_SIGN(i8) KW_SIGN(u8)

//@ kw_max:
// The larger one; NaN if either is NaN.
template <class V> KW_INLINE V kw_max(V a, V b) {
  const auto larger = a > b ? a : b;  // b where either is NaN
  if constexpr (((kw_element<V>)0.5) != 0) return a != a ? a : larger;
  else return larger;
}
#define KW_MAX(T) KW_INLINE T kw_max(T a, T b) { return a > b || a != a ? a : b; }
KW_MAX(float) KW_MAX(double) KW_MAX(i64) KW_MAX(i32) KW_MAX(i16) KW_MAX(i8) KW_MAX(u8)

//@ kw_min:
// The smaller one; NaN if either is NaN.
template <class V> KW_INLINE V kw_min(V a, V b) {
  const auto smaller = a < b ? a : b;  // b where either is NaN
  if constexpr (((kw_element<V>)0.5) != 0) return a != a ? a : smaller;
  else return smaller;
}
#define KW_MIN(T) KW_INLINE T kw_min(T a, T b) { return a < b || a != a ? a : b; }
KW_MIN(float) KW_MIN(double) KW_MIN(i64) KW_MIN(i32) KW_MIN(i16) KW_MIN(i8) KW_MIN(u8)

//@ kw_floordiv: kw_lanes kw_floor
// Towards minus infinity. An integer divided by zero gives -1 or 0 here; torch raises.
#define KW_FLOORDIV(T)                                         \
  KW_INLINE T kw_floordiv(T a, T b) {                          \
    if (b == 0) return (T)(a < 0 ? -1 : 0);                    \
    if (b == (T)-1 && a < 0) return (T)(0 - (unsigned long)a); \
    const T q = (T)(a / b);                                    \
    return (T)(q - ((a % b != 0) & ((a < 0) != (b < 0))));     \
  }
KW_FLOORDIV(i64) KW_FLOORDIV(i32) KW_FLOORDIV(i16) KW_FLOORDIV(i8) KW_FLOORDIV(u8)
KW_INLINE float kw_floordiv(float a, float b) {
  if (b == 0) return a / b;
  const float rest = __builtin_fmodf(a, b);
  float q = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) q -= 1;
  const float down = __builtin_floorf(q);
  return q - down > 0.5f ? down + 1 : down;
}
KW_INLINE double kw_floordiv(double a, double b) {
  if (b == 0) return a / b;
  const double rest = __builtin_fmod(a, b);
  double q = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) q -= 1;
  const double down = __builtin_floor(q);
  return q - down > 0.5 ? down + 1 : down;
}
template <class V> KW_INLINE V kw_floordiv(V a, V b) {
  return kw_lanes<V>([&](long l) { return kw_floordiv((kw_element<V>)a[l], (kw_element<V>)b[l]); });
}

//@ kw_mod: kw_lanes
// With the divisor's sign, as torch.remainder.
#define KW_MOD(T)                                   \
  KW_INLINE T kw_mod(T a, T b) {                    \
    if (b == 0 || b == (T)-1) return 0;             \
    const T r = (T)(a % b);                         \
    return (T)(r != 0 && (r < 0) != (b < 0) ? r + b : r); \
  }
KW_MOD(i64) KW_MOD(i32) KW_MOD(i16) KW_MOD(i8)
KW_INLINE u8 kw_mod(u8 a, u8 b) { return b == 0 ? 0 : (u8)(a % b); }
KW_INLINE float kw_mod(float a, float b) {
  const float r = __builtin_fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
KW_INLINE double kw_mod(double a, double b) {
  const double r = __builtin_fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class V> KW_INLINE V kw_mod(V a, V b) {
  return kw_lanes<V>([&](long l) { return kw_mod((kw_element<V>)a[l], (kw_element<V>)b[l]); });
}

//@ kw_fmod: kw_lanes
// With the dividend's sign.
#define KW_FMOD(T) KW_INLINE T kw_fmod(T a, T b) { return b == 0 || b == (T)-1 ? (T)0 : (T)(a % b); }
KW_FMOD(i64) KW_FMOD(i32) KW_FMOD(i16) KW_FMOD(i8)
KW_INLINE u8 kw_fmod(u8 a, u8 b) { return b == 0 ? 0 : (u8)(a % b); }
KW_INLINE float kw_fmod(float a, float b) { return __builtin_fmodf(a, b); }
KW_INLINE double kw_fmod(double a, double b) { return __builtin_fmod(a, b); }
template <class V> KW_INLINE V kw_fmod(V a, V b) {
  return kw_lanes<V>([&](long l) { return kw_fmod((kw_element<V>)a[l], (kw_element<V>)b[l]); });
}

//@ kw_sqrt: kw_lanes
KW_INLINE float kw_sqrt(float x) { return __builtin_sqrtf(x); }
KW_INLINE double kw_sqrt(double x) { return __builtin_sqrt(x); }
template <class V> KW_INLINE V kw_sqrt(V x) {
#if defined(__clang__)
  return __builtin_elementwise_sqrt(x);
#else
  [[maybe_unused]] constexpr bool single = sizeof(x[0]) == 4;
#if defined(KW_ISA_AVX512)
  if constexpr (single && sizeof x == 64) return __builtin_ia32_sqrtps512_mask(x, x, (short)-1, 4);
  if constexpr (!single && sizeof x == 64) return __builtin_ia32_sqrtpd512_mask(x, x, (char)-1, 4);
#endif
#if defined(KW_ISA_AVX512) || defined(KW_ISA_AVX2)
  if constexpr (single && sizeof x == 32) return __builtin_ia32_sqrtps256(x);
  if constexpr (!single && sizeof x == 32) return __builtin_ia32_sqrtpd256(x);
#endif
  if constexpr (single && sizeof x == 16) return __builtin_ia32_sqrtps(x);
  if constexpr (!single && sizeof x == 16) return __builtin_ia32_sqrtpd(x);
  return kw_lanes<V>([&](long l) { return kw_sqrt((kw_element<V>)x[l]); });
#endif
}

//@ kw_rsqrt: kw_sqrt
template <class V> KW_INLINE V kw_rsqrt(V x) { return 1 / kw_sqrt(x); }

//@ kw_rounding: kw_lanes
// One definition for floor (mode 1), ceil (2), trunc (3) and round half to even (0).
#if defined(__clang__)
#define KW_ROUND_VECTOR(mode, one) return __builtin_elementwise_##one(x);
#else
#if defined(KW_ISA_AVX512)
#define KW_ROUND_512(mode)                                                                                     \
  if constexpr (single && sizeof x == 64) return __builtin_ia32_rndscaleps_mask(x, 8 | mode, x, (short)-1, 4); \
  if constexpr (!single && sizeof x == 64) return __builtin_ia32_rndscalepd_mask(x, 8 | mode, x, (char)-1, 4);
#else
#define KW_ROUND_512(mode)
#endif
#if defined(KW_ISA_AVX512) || defined(KW_ISA_AVX2)
#define KW_ROUND_256(mode)                                                                \
  if constexpr (single && sizeof x == 32) return __builtin_ia32_roundps256(x, 8 | mode);  \
  if constexpr (!single && sizeof x == 32) return __builtin_ia32_roundpd256(x, 8 | mode); \
  if constexpr (single && sizeof x == 16) return __builtin_ia32_roundps(x, 8 | mode);     \
  if constexpr (!single && sizeof x == 16) return __builtin_ia32_roundpd(x, 8 | mode);
#else
#define KW_ROUND_256(mode)
#endif
#define KW_ROUND_VECTOR(mode, one)                            \
  [[maybe_unused]] constexpr bool single = sizeof(x[0]) == 4; \
  KW_ROUND_512(mode)                                          \
  KW_ROUND_256(mode)                                          \
  return kw_lanes<V>([&](long l) -> kw_element<V> { if constexpr (single) return __builtin_##one##f(x[l]); else return __builtin_##one(x[l]); });
#endif
#define KW_ROUNDING(name, mode, one)                              \
  KW_INLINE float name(float x) { return __builtin_##one##f(x); } \
  KW_INLINE double name(double x) { return __builtin_##one(x); }  \
  template <class V> KW_INLINE V name(V x) { KW_ROUND_VECTOR(mode, one) }

//@ kw_floor: kw_rounding
KW_ROUNDING(kw_floor, 1, floor)

//@ kw_ceil: kw_rounding
KW_ROUNDING(kw_ceil, 2, ceil)

//@ kw_trunc: kw_rounding
KW_ROUNDING(kw_trunc, 3, trunc)

//@ kw_round: kw_rounding
KW_ROUNDING(kw_round, 0, rint)
