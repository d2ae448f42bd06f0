// softmax: printed by Kernelwright. Schedule:
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

// x in every lane.
template <class V, int... L> KW_INLINE V kw_splat_of(kw_element<V> x, kw_list<L...>) { return V{((void)L, x)...}; }
template <class V> KW_INLINE V kw_splat(kw_element<V> x) { return kw_splat_of<V>(x, kw_indices<kw_count<V>>()); }

// The number of vectors a step: at most `want`, no wider than `width` elements, and without a wasteful last step.
constexpr int kw_pick(int width, int lanes, int want) {
  const int vectors = (width + lanes - 1) / lanes;
  for (int u = want; u > 1; --u)
    if (u * lanes <= width && (vectors + u - 1) / u * u <= vectors + vectors / 16) return u;
  return 1;
}

// The larger one; NaN if either is NaN.
template <class V> KW_INLINE V kw_max(V a, V b) {
  const auto larger = a > b ? a : b;  // b where either is NaN
  if constexpr (((kw_element<V>)0.5) != 0) return a != a ? a : larger;
  else return larger;
}
#define KW_MAX(T) KW_INLINE T kw_max(T a, T b) { return a > b || a != a ? a : b; }
KW_MAX(float) KW_MAX(double) KW_MAX(i64) KW_MAX(i32) KW_MAX(i16) KW_MAX(i8) KW_MAX(u8)

// 2^n for -126 <= n <= 127.
template <class V> KW_INLINE V kw_pow2(kw_ints<V> n) { return (V)((n + 127) << 23); }

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

template <class V, int... L> KW_INLINE auto kw_low(V v, kw_list<L...>) { return __builtin_shufflevector(v, v, L...); }
template <class V, int... L> KW_INLINE auto kw_high(V v, kw_list<L...>) {
  return __builtin_shufflevector(v, v, (kw_count<V> / 2 + L)...);
}
// Joins the lanes of v pairwise with op, which takes vectors and scalars.
template <class V, class F> KW_INLINE kw_element<V> kw_fold(V v, F op) {
  if constexpr (kw_count<V> == 2) return op((kw_element<V>)v[0], (kw_element<V>)v[1]);
  else return kw_fold(op(kw_low(v, kw_indices<kw_count<V> / 2>()), kw_high(v, kw_indices<kw_count<V> / 2>())), op);
}

template <class V> KW_INLINE kw_element<V> kw_fold_sum(V v) {
  return kw_fold(v, [](auto a, auto b) { return (decltype(a))(a + b); });
}

template <class V> KW_INLINE kw_element<V> kw_fold_max(V v) {
  return kw_fold(v, [](auto a, auto b) { return kw_max(a, b); });
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

// Nest n_y. Tile loops: i 0..64 by 1; the first 1 in parallel, 5 tiles a chunk.
// Stage 0: vectors along j by 4, loops i.
// Stage 1: vectors along j by 4, loops i.
// Stage 2: vectors along j by 4, loops i.
static void nest_n_y(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const int thread = frame.serial ? 0 : frame.pool->thread_num();
  char* const local = frame.workspace + 0 + thread * 4224l;
  const float* __restrict const p_x = (const float*)frame.t[0];
  float* const p_top = (float*)(local + 4096);
  float* const p_e = (float*)(local + 0);
  float* const p_total = (float*)(local + 4160);
  float* __restrict const p_y = (float*)frame.t[1];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 5, __ATOMIC_RELAXED)) < 64;) {
    for (long tile = tile_c; tile < (tile_c + 5 < 64 ? tile_c + 5 : 64); ++tile) {
      const long i_0 = tile;
      // top[i]: max over j (top)
      {
        constexpr int W = kw_bytes / 4;
        {
          const long i = i_0;
          constexpr int U = kw_pick(1024, W, 4);
          vec<float, W> max1[U];
          for (auto& slot : max1) slot = kw_splat<vec<float, W>>(-__builtin_inff());
          long j_v = 0;
          for (; j_v + U * W <= 1024; j_v += U * W) {
            KW_UNROLL(4)
            for (int u = 0; u < U; ++u) {
              const long j = j_v + u * W;
              const auto x_2 = kw_load<W>(p_x + i * 1024 + j);
              max1[u] = kw_max(x_2, max1[u]);
            }
          }
          for (int u = 1; u < U; ++u) max1[0] = kw_max(max1[0], max1[u]);
          const auto top__3 = kw_fold_max(max1[0]);
          p_top[i - i_0] = top__3;
        }
      }
      // e[i, j]: map (e)
      // total[i]: sum over j (total)
      {
        constexpr int W = kw_bytes / 4;
        {
          const long i = i_0;
          constexpr int U = kw_pick(1024, W, 4);
          vec<float, W> sum4[U] = {};
          const auto top_6 = p_top[i - i_0];
          long j_v = 0;
          for (; j_v + U * W <= 1024; j_v += U * W) {
            KW_UNROLL(4)
            for (int u = 0; u < U; ++u) {
              const long j = j_v + u * W;
              const auto x_5 = kw_load<W>(p_x + i * 1024 + j);
              const auto e__7 = kw_exp(x_5 - top_6);
              kw_store(p_e + i * 1024 + j - i_0 * 1024, e__7);
              sum4[u] += e__7;
            }
          }
          for (int u = 1; u < U; ++u) sum4[0] = sum4[0] + sum4[u];
          const auto total__8 = kw_fold_sum(sum4[0]);
          p_total[i - i_0] = total__8;
        }
      }
      // y[i, j]: map (y)
      {
        constexpr int W = kw_bytes / 4;
        {
          const long i = i_0;
          const auto total_10 = p_total[i - i_0];
          KW_UNROLL(4)
          for (long j_v = 0; j_v < 1024; j_v += W) {
            const long j = j_v;
            const auto e_9 = kw_load<W>(p_e + i * 1024 + j - i_0 * 1024);
            const auto y__11 = e_9 / total_10;
            kw_store(p_y + i * 1024 + j, y__11);
          }
        }
      }
    }
  }
}


extern "C" void kw_run_0(void* const* t, char* workspace, char* packed, const kw_pool* pool) {
  kw_frame frame = {t, workspace, packed, pool, 0, true};
  kw_launch(nest_n_y, &frame, 13, 0);
}
