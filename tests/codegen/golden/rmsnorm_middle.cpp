// rmsnorm_middle: printed by Kernelwright. Schedule:
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

// f(0), f(1), ...: for what has no vector instruction. With a count, lanes beyond it are zero and f is not called for them.
template <class V, class F, int... L> KW_INLINE V kw_lanes_of(F f, kw_list<L...>) { return V{f(L)...}; }
template <class V, class F> KW_INLINE V kw_lanes(F f) { return kw_lanes_of<V>(f, kw_indices<kw_count<V>>()); }
template <class V, class F> KW_INLINE V kw_lanes(long n, F f) {
  V v = {};
  for (long l = 0; l < n; ++l) v[l] = f(l);
  return v;
}

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

template <class V> KW_INLINE V kw_rsqrt(V x) { return 1 / kw_sqrt(x); }

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

// Nest n_y. Tile loops: n 0..4 by 1, p 0..196 by 104; the first 2 in parallel, 1 tiles a chunk.
// Stage 0: vectors along p by 4, loops n, c.
// Stage 1: vectors along p by 4, loops n, c.
static void nest_n_y(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const int thread = frame.serial ? 0 : frame.pool->thread_num();
  char* const local = frame.workspace + 0 + thread * 448l;
  const float* __restrict const p_x = (const float*)frame.t[0];
  float* const p_scale = (float*)(local + 0);
  float* __restrict const p_y = (float*)frame.t[1];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 1, __ATOMIC_RELAXED)) < 8;) {
    const long tile = tile_c;
    const long n_0 = tile / 2;
    const long p_0 = tile % 2 * 104, p_end = (p_0 + 104 < 196 ? p_0 + 104 : 196);
    // scale[n, p]: sum over c (scale)
    {
      constexpr int W = kw_bytes / 4;
      {
        const long n = n_0;
        constexpr int U = kw_pick(92, W, 4);
        for (long p_v = p_0; p_v < p_end; p_v += U * W) {
          const long p_0v = p_v + U * W <= p_end ? p_v : p_end - U * W;
          vec<float, W> sum1[U] = {};
          KW_UNROLL(64)
          for (long c = 0; c < 64; ++c) {
            KW_UNROLL(4)
            for (int u = 0; u < U; ++u) {
              const long p = p_0v + u * W;
              const auto x_2 = kw_load<W>(p_x + n * 12544 + c * 196 + p);
              const auto v_3 = x_2 * x_2;
              sum1[u] += v_3;
            }
          }
          KW_UNROLL(4)
          for (int u = 0; u < U; ++u) {
            const long p = p_0v + u * W;
            const auto acc_4 = sum1[u];
            const auto scale__5 = kw_rsqrt(acc_4 * 0.015625f + 1e-05f);
            kw_store(p_scale + n * 104 + p - n_0 * 104 - p_0, scale__5);
          }
        }
      }
    }
    // y[n, c, p]: map (y)
    {
      constexpr int W = kw_bytes / 4;
      {
        const long n = n_0;
        for (long c = 0; c < 64; ++c) {
          KW_UNROLL(4)
          for (long p_v = p_0; p_v < p_end; p_v += W) {
            const long p = p_v + W <= p_end ? p_v : p_end - W;
            const auto x_6 = kw_load<W>(p_x + n * 12544 + c * 196 + p);
            const auto scale_7 = kw_load<W>(p_scale + n * 104 + p - n_0 * 104 - p_0);
            const auto y__8 = x_6 * scale_7;
            kw_store(p_y + n * 12544 + c * 196 + p, y__8);
          }
        }
      }
    }
  }
}


extern "C" void kw_run_0(void* const* t, char* workspace, char* packed, const kw_pool* pool) {
  kw_frame frame = {t, workspace, packed, pool, 0, true};
  kw_launch(nest_n_y, &frame, 8, 0);
}
