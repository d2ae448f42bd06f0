// gelu: printed by Kernelwright. Schedule:
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

// 2^n for -126 <= n <= 127.
template <class V> KW_INLINE V kw_pow2(kw_ints<V> n) { return (V)((n + 127) << 23); }

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

// x in every lane.
template <class V, int... L> KW_INLINE V kw_splat_of(kw_element<V> x, kw_list<L...>) { return V{((void)L, x)...}; }
template <class V> KW_INLINE V kw_splat(kw_element<V> x) { return kw_splat_of<V>(x, kw_indices<kw_count<V>>()); }

// The scalar form of a vector function: the same arithmetic, so that both give the same result.
#define KW_SCALAR(fn)                                                                   \
  KW_INLINE float fn(float x) { return fn(kw_splat<vec<float, 4>>(x))[0]; }             \
  KW_INLINE double fn(double x) { return fn(kw_splat<vec<double, 2>>(x))[0]; }

// f(0), f(1), ...: for what has no vector instruction. With a count, lanes beyond it are zero and f is not called for them.
template <class V, class F, int... L> KW_INLINE V kw_lanes_of(F f, kw_list<L...>) { return V{f(L)...}; }
template <class V, class F> KW_INLINE V kw_lanes(F f) { return kw_lanes_of<V>(f, kw_indices<kw_count<V>>()); }
template <class V, class F> KW_INLINE V kw_lanes(long n, F f) {
  V v = {};
  for (long l = 0; l < n; ++l) v[l] = f(l);
  return v;
}

// Lane by lane through libm.
#define KW_LIBM(x, fn) kw_lanes<V>([&](long l) { return fn(x[l]); })

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

// Each lane converted as C does; float to integer truncates.
template <class V, class U> KW_INLINE V kw_convert(U u) { return __builtin_convertvector(u, V); }

// W consecutive elements, of any alignment. 16-bit floats are widened to float.
template <int W, class T> KW_INLINE auto kw_load(const T* p) {
  vec<T, W> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Lanes in the form in which *p stores them.
template <class T, class V> KW_INLINE auto kw_narrow(const T*, V v) {
  if constexpr (sizeof(T) == sizeof(kw_element<V>)) return (vec<T, kw_count<V>>)v;
  else return kw_convert<vec<T, kw_count<V>>>(v);
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

// Nest n_y. Tile loops: i 0..64000 by 8000; the first 1 in parallel, 1 tiles a chunk.
// Stage 0: vectors along i by 4.
static void nest_n_y(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const float* __restrict const p_x = (const float*)frame.t[0];
  float* __restrict const p_y = (float*)frame.t[1];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 1, __ATOMIC_RELAXED)) < 8;) {
    const long tile = tile_c;
    const long i_0 = tile * 8000, i_end = i_0 + 8000;
    // y[i]: map (y)
    {
      constexpr int W = kw_bytes / 4;
      KW_UNROLL(4)
      for (long i_v = i_0; i_v < i_end; i_v += W) {
        const long i = i_v;
        const auto x_1 = kw_load<W>(p_x + i);
        const auto y__2 = x_1 * 0.5f * (kw_erf(x_1 * 0.70710677f) + 1.0f);
        kw_store(p_y + i, y__2);
      }
    }
  }
}


extern "C" void kw_run_0(void* const* t, char* workspace, char* packed, const kw_pool* pool) {
  kw_frame frame = {t, workspace, packed, pool, 0, true};
  kw_launch(nest_n_y, &frame, 8, 0);
}
