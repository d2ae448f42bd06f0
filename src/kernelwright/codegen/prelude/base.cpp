//@ kw_base:
typedef long i64;
typedef int i32;
typedef short i16;
typedef signed char i8;
typedef unsigned char u8;

#if defined(KW_ISA_AVX512)
constexpr int kw_bytes = 64;
#elif defined(KW_ISA_AVX2)
constexpr int kw_bytes = 32;
#else
constexpr int kw_bytes = 16;
#endif

#define KW_PRAGMA(text) _Pragma(#text)
#define KW_UNROLL(n) KW_PRAGMA(GCC unroll n)
#define KW_INLINE static inline __attribute__((always_inline))

// vec<T, N>: N elements of T in one vector register.
template <class T, int N> struct kw_vec { typedef T type __attribute__((vector_size(N * sizeof(T)))); };
template <class T, int N> using vec = typename kw_vec<T, N>::type;
template <class T> struct kw_bare { using type = T; };
template <class T> struct kw_bare<T&> { using type = T; };
template <class T> struct kw_bare<T&&> { using type = T; };
template <class V> using kw_element = typename kw_bare<decltype(V{}[0])>::type;
template <class V> constexpr int kw_count = sizeof(V) / sizeof(kw_element<V>);
template <int Bytes> struct kw_int;
template <> struct kw_int<1> { using type = i8; };
template <> struct kw_int<2> { using type = i16; };
template <> struct kw_int<4> { using type = i32; };
template <> struct kw_int<8> { using type = i64; };
template <class V> using kw_ints = vec<typename kw_int<sizeof(kw_element<V>)>::type, kw_count<V>>;
template <int... L> struct kw_list {};
template <int N, int... L> struct kw_upto : kw_upto<N - 1, N - 1, L...> {};
template <int... L> struct kw_upto<0, L...> { using type = kw_list<L...>; };
template <int N> using kw_indices = typename kw_upto<N>::type;

struct kw_pool {
  void (*parallel)(void (*fn)(void*), void* data, unsigned threads, unsigned flags);
  int (*thread_num)(void);
  int threads;
};

//@ kw_f16:
struct f16 { unsigned short bits; };

//@ kw_bf16:
struct bf16 { unsigned short bits; };

//@ kw_splat:
// x in every lane.
template <class V, int... L> KW_INLINE V kw_splat_of(kw_element<V> x, kw_list<L...>) { return V{((void)L, x)...}; }
template <class V> KW_INLINE V kw_splat(kw_element<V> x) { return kw_splat_of<V>(x, kw_indices<kw_count<V>>()); }

//@ kw_iota:
// 0, 1, 2, ...
template <class V, int... L> KW_INLINE V kw_iota_of(kw_list<L...>) { return V{L...}; }
template <class V> KW_INLINE V kw_iota() { return kw_iota_of<V>(kw_indices<kw_count<V>>()); }

//@ kw_convert:
// Each lane converted as C does; float to integer truncates.
template <class V, class U> KW_INLINE V kw_convert(U u) { return __builtin_convertvector(u, V); }

//@ kw_lanes:
// f(0), f(1), ...: for what has no vector instruction. With a count, lanes beyond it are zero and f is not called for them.
template <class V, class F, int... L> KW_INLINE V kw_lanes_of(F f, kw_list<L...>) { return V{f(L)...}; }
template <class V, class F> KW_INLINE V kw_lanes(F f) { return kw_lanes_of<V>(f, kw_indices<kw_count<V>>()); }
template <class V, class F> KW_INLINE V kw_lanes(long n, F f) {
  V v = {};
  for (long l = 0; l < n; ++l) v[l] = f(l);
  return v;
}

//@ kw_round_f16: kw_from_f16 kw_to_f16
template <class V> KW_INLINE V kw_round_f16(V x) { return kw_from_f16_bits(kw_to_f16_bits(x)); }
KW_INLINE float kw_round_f16(float x) { return kw_from_f16(kw_to_f16(x)); }

//@ kw_round_bf16: kw_from_bf16 kw_to_bf16
template <class V> KW_INLINE V kw_round_bf16(V x) { return kw_from_bf16_bits(kw_to_bf16_bits(x)); }
KW_INLINE float kw_round_bf16(float x) { return kw_from_bf16(kw_to_bf16(x)); }

//@ kw_from_bf16: kw_bf16 kw_convert
// bfloat16 is the upper half of a float.
template <class I> KW_INLINE vec<float, kw_count<I>> kw_from_bf16_bits(I bits) { return (vec<float, kw_count<I>>)(bits << 16); }
KW_INLINE float kw_from_bf16(bf16 x) { return __builtin_bit_cast(float, (i32)((unsigned)x.bits << 16)); }

//@ kw_to_bf16: kw_bf16 kw_convert
// To the nearest, ties to even; NaN stays NaN.
template <class V> KW_INLINE kw_ints<V> kw_to_bf16_bits(V x) {
  using I = kw_ints<V>;
  using U = vec<unsigned, kw_count<V>>;
  const U bits = (U)x;
  const U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return x == x ? (I)rounded : (I)((bits >> 16) | 0x40u);
}
KW_INLINE bf16 kw_to_bf16(float x) { return {(unsigned short)kw_to_bf16_bits(vec<float, 4>{x, x, x, x})[0]}; }

//@ kw_from_f16: kw_f16 kw_convert
// Exponent and mantissa shifted into place and rescaled by 2^112, which also makes denormals right.
template <class I> KW_INLINE vec<float, kw_count<I>> kw_from_f16_bits(I bits) {
  using V = vec<float, kw_count<I>>;
  const I magnitude = (bits & 0x7fff) << 13;
  const I scaled = (I)((V)magnitude * 0x1p112f);
  const I special = magnitude | 0x7f800000;  // Inf and NaN
  const I value = magnitude >= (0x7c00 << 13) ? special : scaled;
  return (V)(value | ((bits & 0x8000) << 16));
}
KW_INLINE float kw_from_f16(f16 x) {
  const i32 b = x.bits;
  return kw_from_f16_bits(vec<i32, 4>{b, b, b, b})[0];
}

//@ kw_to_f16: kw_f16 kw_convert
// To the nearest, ties to even, with denormals; overflow gives Inf, NaN stays NaN.
template <class V> KW_INLINE kw_ints<V> kw_to_f16_bits(V x) {
  using I = kw_ints<V>;
  const I all = (I)x;
  const I sign = (all >> 16) & 0x8000;
  const I bits = all & 0x7fffffff;
  const I odd = (bits >> 13) & 1;
  const I normal = (bits + (0xfff + odd) - (112 << 23)) >> 13;
  const I small = (I)((V)bits + 0.5f) - (126 << 23);  // the adder rounds to multiples of 2^-24
  const I wide = bits > 0x7f800000 ? (bits >> 13 & 0x3ff) | 0x7e00 : I{} + 0x7c00;
  const I value = bits < (113 << 23) ? small : (bits >= 0x477ff000 ? wide : normal);
  return sign | value;
}
KW_INLINE f16 kw_to_f16(float x) { return {(unsigned short)kw_to_f16_bits(vec<float, 4>{x, x, x, x})[0]}; }

//@ kw_pick:
// The number of vectors a step: at most `want`, no wider than `width` elements, and without a wasteful last step.
constexpr int kw_pick(int width, int lanes, int want) {
  const int vectors = (width + lanes - 1) / lanes;
  for (int u = want; u > 1; --u)
    if (u * lanes <= width && (vectors + u - 1) / u * u <= vectors + vectors / 16) return u;
  return 1;
}
