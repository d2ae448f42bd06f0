// halves: printed by Kernelwright. Schedule:
//   (all defaults)

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

struct bf16 { unsigned short bits; };

// Each lane converted as C does; float to integer truncates.
template <class V, class U> KW_INLINE V kw_convert(U u) { return __builtin_convertvector(u, V); }

// bfloat16 is the upper half of a float.
template <class I> KW_INLINE vec<float, kw_count<I>> kw_from_bf16_bits(I bits) { return (vec<float, kw_count<I>>)(bits << 16); }
KW_INLINE float kw_from_bf16(bf16 x) { return __builtin_bit_cast(float, (i32)((unsigned)x.bits << 16)); }

// To the nearest, ties to even; NaN stays NaN.
template <class V> KW_INLINE kw_ints<V> kw_to_bf16_bits(V x) {
  using I = kw_ints<V>;
  using U = vec<unsigned, kw_count<V>>;
  const U bits = (U)x;
  const U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return x == x ? (I)rounded : (I)((bits >> 16) | 0x40u);
}
KW_INLINE bf16 kw_to_bf16(float x) { return {(unsigned short)kw_to_bf16_bits(vec<float, 4>{x, x, x, x})[0]}; }

template <class V> KW_INLINE V kw_round_bf16(V x) { return kw_from_bf16_bits(kw_to_bf16_bits(x)); }
KW_INLINE float kw_round_bf16(float x) { return kw_from_bf16(kw_to_bf16(x)); }

// W consecutive elements, of any alignment. 16-bit floats are widened to float.
template <int W, class T> KW_INLINE auto kw_load(const T* p) {
  vec<T, W> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <int W> KW_INLINE vec<float, W> kw_load(const bf16* p) {
  return kw_from_bf16_bits(kw_convert<vec<i32, W>>(kw_load<W>((const unsigned short*)p)));
}

struct f16 { unsigned short bits; };

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

template <int W> KW_INLINE vec<float, W> kw_load(const f16* p) {
  return kw_from_f16_bits(kw_convert<vec<i32, W>>(kw_load<W>((const unsigned short*)p)));
}

// Lanes in the form in which *p stores them.
template <class T, class V> KW_INLINE auto kw_narrow(const T*, V v) {
  if constexpr (sizeof(T) == sizeof(kw_element<V>)) return (vec<T, kw_count<V>>)v;
  else return kw_convert<vec<T, kw_count<V>>>(v);
}

template <class V> KW_INLINE vec<unsigned short, kw_count<V>> kw_narrow(const bf16*, V v) {
  return kw_convert<vec<unsigned short, kw_count<V>>>(kw_to_bf16_bits(v));
}

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

template <class V> KW_INLINE vec<unsigned short, kw_count<V>> kw_narrow(const f16*, V v) {
  return kw_convert<vec<unsigned short, kw_count<V>>>(kw_to_f16_bits(v));
}

template <class T, class V> KW_INLINE void kw_store(T* p, V v) {
  const auto x = kw_narrow(p, v);
  __builtin_memcpy((void*)p, &x, sizeof x);
}

// What the threads of a nest share.
struct kw_frame {
  void* const* t;
  char* workspace;
  char* packed;
  const kw_pool* pool;
  long next;    // the first tile that no thread has taken
  bool serial;  // no other thread takes part
};

static void kw_launch(void (*worker)(void*), kw_frame* frame, long chunks, int wanted) {
  const kw_pool* const pool = frame->pool;
  long threads = wanted > 0 && wanted < pool->threads ? wanted : pool->threads;
  if (threads > chunks) threads = chunks;
  frame->next = 0;
  frame->serial = threads <= 1 || !pool->parallel || !pool->thread_num;
  if (frame->serial) worker(frame);
  else pool->parallel(worker, frame, (unsigned)threads, 0);
}

// Nest n_y. Tile loops: i 0..1600 by 128; the first 1 in parallel, 1 tiles a chunk.
// Stage 0: vectors along i by 4.
static void nest_n_y(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const f16* __restrict const p_x = (const f16*)frame.t[0];
  f16* __restrict const p_y = (f16*)frame.t[2];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 1, __ATOMIC_RELAXED)) < 13;) {
    const long tile = tile_c;
    const long i_0 = tile * 128, i_end = (i_0 + 128 < 1600 ? i_0 + 128 : 1600);
    // y[i]: map (y)
    {
      constexpr int W = kw_bytes / 4;
      KW_UNROLL(4)
      for (long i_v = i_0; i_v < i_end; i_v += W) {
        const long i = i_v + W <= i_end ? i_v : i_end - W;
        const auto x_1 = kw_load<W>(p_x + i);
        const auto y__2 = x_1 * 1.5f;
        kw_store(p_y + i, y__2);
      }
    }
  }
}

// Nest n_v. Tile loops: i 0..1600 by 128; the first 1 in parallel, 1 tiles a chunk.
// Stage 0: vectors along i by 4.
static void nest_n_v(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const bf16* __restrict const p_z = (const bf16*)frame.t[1];
  const f16* __restrict const p_x = (const f16*)frame.t[0];
  bf16* __restrict const p_v = (bf16*)frame.t[3];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 1, __ATOMIC_RELAXED)) < 13;) {
    const long tile = tile_c;
    const long i_0 = tile * 128, i_end = (i_0 + 128 < 1600 ? i_0 + 128 : 1600);
    // v[i]: map (v)
    {
      constexpr int W = kw_bytes / 4;
      KW_UNROLL(4)
      for (long i_v = i_0; i_v < i_end; i_v += W) {
        const long i = i_v + W <= i_end ? i_v : i_end - W;
        const auto z_1 = kw_load<W>(p_z + i);
        const auto x_2 = kw_load<W>(p_x + i);
        const auto v__3 = kw_round_bf16(z_1 + x_2);
        kw_store(p_v + i, v__3);
      }
    }
  }
}


extern "C" void kw_run_0(void* const* t, char* workspace, char* packed, const kw_pool* pool) {
  kw_frame frame = {t, workspace, packed, pool, 0, true};
  kw_launch(nest_n_y, &frame, 13, 1);
  kw_launch(nest_n_v, &frame, 13, 1);
}
