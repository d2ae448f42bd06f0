// total: printed by Kernelwright. Schedule:
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

// Each lane converted as C does; float to integer truncates.
template <class V, class U> KW_INLINE V kw_convert(U u) { return __builtin_convertvector(u, V); }

// The number of vectors a step: at most `want`, no wider than `width` elements, and without a wasteful last step.
constexpr int kw_pick(int width, int lanes, int want) {
  const int vectors = (width + lanes - 1) / lanes;
  for (int u = want; u > 1; --u)
    if (u * lanes <= width && (vectors + u - 1) / u * u <= vectors + vectors / 16) return u;
  return 1;
}

// The smaller one; NaN if either is NaN.
template <class V> KW_INLINE V kw_min(V a, V b) {
  const auto smaller = a < b ? a : b;  // b where either is NaN
  if constexpr (((kw_element<V>)0.5) != 0) return a != a ? a : smaller;
  else return smaller;
}
#define KW_MIN(T) KW_INLINE T kw_min(T a, T b) { return a < b || a != a ? a : b; }
KW_MIN(float) KW_MIN(double) KW_MIN(i64) KW_MIN(i32) KW_MIN(i16) KW_MIN(i8) KW_MIN(u8)

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

// Blocked summation: a finished block goes to the total.
template <class T> KW_INLINE void kw_flush(T& total, T& sum) {
  total += sum;
  sum = T{};
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

template <class V> KW_INLINE kw_element<V> kw_fold_prod(V v) {
  return kw_fold(v, [](auto a, auto b) { return (decltype(a))(a * b); });
}

template <class V> KW_INLINE kw_element<V> kw_fold_min(V v) {
  return kw_fold(v, [](auto a, auto b) { return kw_min(a, b); });
}

template <class V> KW_INLINE bool kw_fold_any(V v) {
  return kw_fold(v, [](auto a, auto b) { return (decltype(a))(a | b); }) != 0;
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

// Nest n_sum. Tile loops: none; the first 0 in parallel, 1 tiles a chunk.
// Stage 0: vectors along i by 4.
static void nest_n_sum(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const float* __restrict const p_x = (const float*)frame.t[0];
  float* __restrict const p_sum = (float*)frame.t[2];
  // sum[]: sum over i (sum)
  {
    constexpr int W = kw_bytes / 4;
    constexpr int U = kw_pick(64000, W, 4);
    vec<float, W> sum1[U] = {};
    vec<float, W> total2[U] = {};
    long i_v = 0;
    while (i_v + U * W <= 64000) {
      const long i_stop = i_v + 256 * U * W <= 64000 ? i_v + 256 * U * W : 64000;
      for (; i_v + U * W <= i_stop; i_v += U * W) {
        KW_UNROLL(4)
        for (int u = 0; u < U; ++u) {
          const long i = i_v + u * W;
          const auto x__64000_3 = kw_load<W>(p_x + i);
          sum1[u] += x__64000_3;
        }
      }
      for (int u = 0; u < U; ++u) kw_flush(total2[u], sum1[u]);
    }
    for (int u = 0; u < U; ++u) kw_flush(total2[u], sum1[u]);
    for (int u = 1; u < U; ++u) total2[0] = total2[0] + total2[u];
    const auto sum__4 = kw_fold_sum(total2[0]);
    p_sum[0] = sum__4;
  }
}

// Nest n_least. Tile loops: i 0..64 by 4; the first 1 in parallel, 2 tiles a chunk.
// Stage 0: vectors along j by 4, loops i.
static void nest_n_least(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const float* __restrict const p_x = (const float*)frame.t[0];
  float* __restrict const p_least = (float*)frame.t[3];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 2, __ATOMIC_RELAXED)) < 16;) {
    for (long tile = tile_c; tile < tile_c + 2; ++tile) {
      const long i_0 = tile * 4, i_end = i_0 + 4;
      // least[i]: min over j (least)
      {
        constexpr int W = kw_bytes / 4;
        for (long i = i_0; i < i_end; ++i) {
          constexpr int U = kw_pick(1000, W, 4);
          vec<float, W> min1[U];
          for (auto& slot : min1) slot = kw_splat<vec<float, W>>(__builtin_inff());
          long j_v = 0;
          for (; j_v + U * W <= 1000; j_v += U * W) {
            KW_UNROLL(4)
            for (int u = 0; u < U; ++u) {
              const long j = j_v + u * W;
              const auto x_2 = kw_load<W>(p_x + i * 1000 + j);
              min1[u] = kw_min(x_2, min1[u]);
            }
          }
          for (; j_v < 1000; j_v += W) {
            const long j = j_v;
            const long left = 1000 - j_v < W ? 1000 - j_v : W;
            const auto x_3 = kw_load_part<W>(p_x + i * 1000 + j, left);
            const auto v_4 = kw_iota<vec<i32, W>>() < (i32)left ? x_3 : kw_splat<vec<float, W>>(__builtin_inff());
            min1[0] = kw_min(v_4, min1[0]);
          }
          for (int u = 1; u < U; ++u) min1[0] = kw_min(min1[0], min1[u]);
          const auto least__5 = kw_fold_min(min1[0]);
          p_least[i] = least__5;
        }
      }
    }
  }
}

// Nest n_prod. Tile loops: i 0..64 by 4; the first 1 in parallel, 2 tiles a chunk.
// Stage 0: vectors along j by 4, loops i.
static void nest_n_prod(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const float* __restrict const p_x = (const float*)frame.t[0];
  float* __restrict const p_prod = (float*)frame.t[4];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 2, __ATOMIC_RELAXED)) < 16;) {
    for (long tile = tile_c; tile < tile_c + 2; ++tile) {
      const long i_0 = tile * 4, i_end = i_0 + 4;
      // prod[i]: prod over j (prod)
      {
        constexpr int W = kw_bytes / 4;
        for (long i = i_0; i < i_end; ++i) {
          constexpr int U = kw_pick(1000, W, 4);
          vec<float, W> prod1[U];
          for (auto& slot : prod1) slot = kw_splat<vec<float, W>>(1.0f);
          long j_v = 0;
          for (; j_v + U * W <= 1000; j_v += U * W) {
            KW_UNROLL(4)
            for (int u = 0; u < U; ++u) {
              const long j = j_v + u * W;
              const auto x_2 = kw_load<W>(p_x + i * 1000 + j);
              prod1[u] *= x_2;
            }
          }
          for (; j_v < 1000; j_v += W) {
            const long j = j_v;
            const long left = 1000 - j_v < W ? 1000 - j_v : W;
            const auto x_3 = kw_load_part<W>(p_x + i * 1000 + j, left);
            const auto v_4 = kw_iota<vec<i32, W>>() < (i32)left ? x_3 : kw_splat<vec<float, W>>(1.0f);
            prod1[0] *= v_4;
          }
          for (int u = 1; u < U; ++u) prod1[0] = prod1[0] * prod1[u];
          const auto prod__5 = kw_fold_prod(prod1[0]);
          p_prod[i] = prod__5;
        }
      }
    }
  }
}

// Nest n_any. Tile loops: i 0..64 by 4; the first 1 in parallel, 2 tiles a chunk.
// Stage 0: vectors along j by 4, loops i.
static void nest_n_any(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const u8* __restrict const p_m = (const u8*)frame.t[1];
  u8* __restrict const p_any = (u8*)frame.t[5];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 2, __ATOMIC_RELAXED)) < 16;) {
    for (long tile = tile_c; tile < tile_c + 2; ++tile) {
      const long i_0 = tile * 4, i_end = i_0 + 4;
      // any[i]: any over j (any)
      {
        constexpr int W = kw_bytes / 4;
        for (long i = i_0; i < i_end; ++i) {
          constexpr int U = kw_pick(1000, W, 4);
          vec<i32, W> any1[U] = {};
          long j_v = 0;
          for (; j_v + U * W <= 1000; j_v += U * W) {
            KW_UNROLL(4)
            for (int u = 0; u < U; ++u) {
              const long j = j_v + u * W;
              const auto m_2 = kw_convert<vec<i32, W>>(kw_load<W>(p_m + i * 1000 + j)) != 0;
              any1[u] |= m_2;
            }
          }
          for (; j_v < 1000; j_v += W) {
            const long j = j_v;
            const long left = 1000 - j_v < W ? 1000 - j_v : W;
            const auto m_3 = kw_convert<vec<i32, W>>(kw_load_part<W>(p_m + i * 1000 + j, left)) != 0;
            const auto v_4 = kw_iota<vec<i32, W>>() < (i32)left ? m_3 : kw_splat<vec<i32, W>>(-(i32)(false));
            any1[0] |= v_4;
          }
          for (int u = 1; u < U; ++u) any1[0] = any1[0] | any1[u];
          const auto any__5 = kw_fold_any(any1[0]);
          p_any[i] = any__5;
        }
      }
    }
  }
}

// Nest n_all. Tile loops: j 0..1000 by 128; the first 1 in parallel, 1 tiles a chunk.
// Stage 0: vectors along j by 4, loops i.
static void nest_n_all(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const u8* __restrict const p_m = (const u8*)frame.t[1];
  u8* __restrict const p_all = (u8*)frame.t[6];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 1, __ATOMIC_RELAXED)) < 8;) {
    const long tile = tile_c;
    const long j_0 = tile * 128, j_end = (j_0 + 128 < 1000 ? j_0 + 128 : 1000);
    // all[j]: all over i (all)
    {
      constexpr int W = kw_bytes / 4;
      constexpr int U = kw_pick(104, W, 4);
      for (long j_v = j_0; j_v < j_end; j_v += U * W) {
        const long j_0v = j_v + U * W <= j_end ? j_v : j_end - U * W;
        vec<i32, W> all1[U];
        for (auto& slot : all1) slot = kw_splat<vec<i32, W>>(-(i32)(true));
        KW_UNROLL(64)
        for (long i = 0; i < 64; ++i) {
          KW_UNROLL(4)
          for (int u = 0; u < U; ++u) {
            const long j = j_0v + u * W;
            const auto m_2 = kw_convert<vec<i32, W>>(kw_load<W>(p_m + i * 1000 + j)) != 0;
            all1[u] &= m_2;
          }
        }
        KW_UNROLL(4)
        for (int u = 0; u < U; ++u) {
          const long j = j_0v + u * W;
          const auto all__3 = all1[u];
          kw_store(p_all + j, (all__3) & 1);
        }
      }
    }
  }
}


extern "C" void kw_run_0(void* const* t, char* workspace, char* packed, const kw_pool* pool) {
  kw_frame frame = {t, workspace, packed, pool, 0, true};
  kw_launch(nest_n_sum, &frame, 1, 1);
  kw_launch(nest_n_least, &frame, 8, 0);
  kw_launch(nest_n_prod, &frame, 8, 0);
  kw_launch(nest_n_any, &frame, 8, 0);
  kw_launch(nest_n_all, &frame, 8, 0);
}
