// layernorm: printed by Kernelwright. Schedule:
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

// 0, 1, 2, ...
template <class V, int... L> KW_INLINE V kw_iota_of(kw_list<L...>) { return V{L...}; }
template <class V> KW_INLINE V kw_iota() { return kw_iota_of<V>(kw_indices<kw_count<V>>()); }

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

// The first n elements; the other lanes are zero and their memory is not touched.
template <int W, class T> KW_INLINE auto kw_load_part(const T* p, long n) {
#if defined(KW_ISA_AVX2) || defined(KW_ISA_AVX512)
  if constexpr (sizeof(T) == 4 && W == 8) {
    const vec<i32, 8> mask = vec<i32, 8>{0, 1, 2, 3, 4, 5, 6, 7} < (i32)n;
    return (vec<T, W>)__builtin_ia32_maskloadps256((const vec<float, 8>*)p, mask);
  }
  if constexpr (sizeof(T) == 4 && W == 4) {
    const vec<i32, 4> mask = vec<i32, 4>{0, 1, 2, 3} < (i32)n;
    return (vec<T, W>)__builtin_ia32_maskloadps((const vec<float, 4>*)p, mask);
  }
#endif
  vec<T, W> v = {};
  __builtin_memcpy(&v, p, n * sizeof(T));
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

// Nest n_y. Tile loops: i 0..64 by 1; the first 1 in parallel, 4 tiles a chunk.
// Stage 0: vectors along j by 4, loops i.
// Stage 1: vectors along j by 4, loops i.
// Stage 2: vectors along j by 4, loops i.
static void nest_n_y(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const int thread = frame.serial ? 0 : frame.pool->thread_num();
  char* const local = frame.workspace + 0 + thread * 128l;
  const float* __restrict const p_x = (const float*)frame.t[0];
  float* const p_mean = (float*)(local + 0);
  float* const p_scale = (float*)(local + 64);
  const float* __restrict const p_w = (const float*)frame.t[1];
  const float* __restrict const p_b = (const float*)frame.t[2];
  float* __restrict const p_y = (float*)frame.t[3];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 4, __ATOMIC_RELAXED)) < 64;) {
    for (long tile = tile_c; tile < tile_c + 4; ++tile) {
      const long i_0 = tile;
      // mean[i]: sum over j (mean)
      {
        constexpr int W = kw_bytes / 4;
        {
          const long i = i_0;
          constexpr int U = kw_pick(1000, W, 4);
          vec<float, W> sum1[U] = {};
          long j_v = 0;
          for (; j_v + U * W <= 1000; j_v += U * W) {
            KW_UNROLL(4)
            for (int u = 0; u < U; ++u) {
              const long j = j_v + u * W;
              const auto x_2 = kw_load<W>(p_x + i * 1000 + j);
              sum1[u] += x_2;
            }
          }
          for (; j_v < 1000; j_v += W) {
            const long j = j_v;
            const long left = 1000 - j_v < W ? 1000 - j_v : W;
            const auto x_3 = kw_load_part<W>(p_x + i * 1000 + j, left);
            const auto v_4 = kw_iota<vec<i32, W>>() < (i32)left ? x_3 : kw_splat<vec<float, W>>(0.0f);
            sum1[0] += v_4;
          }
          for (int u = 1; u < U; ++u) sum1[0] = sum1[0] + sum1[u];
          const auto acc_5 = kw_fold_sum(sum1[0]);
          const auto mean__6 = acc_5 * 0.001f;
          p_mean[i - i_0] = mean__6;
        }
      }
      // scale[i]: sum over j (scale)
      {
        constexpr int W = kw_bytes / 4;
        {
          const long i = i_0;
          constexpr int U = kw_pick(1000, W, 4);
          vec<float, W> sum7[U] = {};
          const auto mean_9 = p_mean[i - i_0];
          long j_v = 0;
          for (; j_v + U * W <= 1000; j_v += U * W) {
            KW_UNROLL(4)
            for (int u = 0; u < U; ++u) {
              const long j = j_v + u * W;
              const auto x_8 = kw_load<W>(p_x + i * 1000 + j);
              const auto t_10 = x_8 - mean_9;
              const auto v_11 = t_10 * t_10;
              sum7[u] += v_11;
            }
          }
          for (; j_v < 1000; j_v += W) {
            const long j = j_v;
            const long left = 1000 - j_v < W ? 1000 - j_v : W;
            const auto x_12 = kw_load_part<W>(p_x + i * 1000 + j, left);
            const auto t_13 = x_12 - mean_9;
            const auto v_14 = kw_iota<vec<i32, W>>() < (i32)left ? t_13 * t_13 : kw_splat<vec<float, W>>(0.0f);
            sum7[0] += v_14;
          }
          for (int u = 1; u < U; ++u) sum7[0] = sum7[0] + sum7[u];
          const auto acc_15 = kw_fold_sum(sum7[0]);
          const auto scale__16 = kw_rsqrt(acc_15 * 0.001f + 1e-05f);
          p_scale[i - i_0] = scale__16;
        }
      }
      // y[i, j]: map (y)
      {
        constexpr int W = kw_bytes / 4;
        {
          const long i = i_0;
          const auto mean_18 = p_mean[i - i_0];
          const auto scale_19 = p_scale[i - i_0];
          KW_UNROLL(4)
          for (long j_v = 0; j_v < 1000; j_v += W) {
            const long j = j_v + W <= 1000 ? j_v : 1000 - W;
            const auto x_17 = kw_load<W>(p_x + i * 1000 + j);
            const auto w_20 = kw_load<W>(p_w + j);
            const auto b_21 = kw_load<W>(p_b + j);
            const auto y__22 = (x_17 - mean_18) * scale_19 * w_20 + b_21;
            kw_store(p_y + i * 1000 + j, y__22);
          }
        }
      }
    }
  }
}


extern "C" void kw_run_0(void* const* t, char* workspace, char* packed, const kw_pool* pool) {
  kw_frame frame = {t, workspace, packed, pool, 0, true};
  kw_launch(nest_n_y, &frame, 16, 0);
}
