// maxpool: printed by Kernelwright. Schedule:
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

// Each lane converted as C does; float to integer truncates.
template <class V, class U> KW_INLINE V kw_convert(U u) { return __builtin_convertvector(u, V); }

// W consecutive elements, of any alignment. 16-bit floats are widened to float.
template <int W, class T> KW_INLINE auto kw_load(const T* p) {
  vec<T, W> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// p[0], p[2], ..., p[2 * (W - 1)], and nothing beyond is read.
template <class V, int... L> KW_INLINE V kw_even(V a, V b, kw_list<L...>) {
  return __builtin_shufflevector(a, b, (2 * L < kw_count<V> ? 2 * L : 2 * L + 1)...);
}
template <int W, class T> KW_INLINE auto kw_load_even(const T* p) {
  return kw_even(kw_load<W>(p), kw_load<W>(p + W - 1), kw_indices<W>());
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

// Nest n_y. Tile loops: c 0..16 by 1, h 0..56 by 7; the first 2 in parallel, 14 tiles a chunk.
// Stage 0: vectors along w by 4, loops c, h, p, q.
static void nest_n_y(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const float* __restrict const p_x = (const float*)frame.t[0];
  float* __restrict const p_y = (float*)frame.t[1];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 14, __ATOMIC_RELAXED)) < 128;) {
    for (long tile = tile_c; tile < (tile_c + 14 < 128 ? tile_c + 14 : 128); ++tile) {
      const long c_0 = tile / 8;
      const long h_0 = tile % 8 * 7, h_end = h_0 + 7;
      // y[c, h, w]: max over p, q (y)
      {
        constexpr int W = kw_bytes / 4;
        {
          const long c = c_0;
          for (long h = h_0; h < h_end; ++h) {
            constexpr int U = kw_pick(55, W, 4);
            for (long w_v = 1; w_v < 56; w_v += U * W) {
              const long w_0v = w_v + U * W <= 56 ? w_v : 56 - U * W;
              vec<float, W> max1[U];
              for (auto& slot : max1) slot = kw_splat<vec<float, W>>(-__builtin_inff());
              KW_UNROLL(3)
              for (long p = 0; p < 3; ++p) {
                const auto t_2 = h * 2 + p - 1 >= 0;
                KW_UNROLL(3)
                for (long q = 0; q < 3; ++q) {
                  KW_UNROLL(4)
                  for (int u = 0; u < U; ++u) {
                    const long w = w_0v + u * W;
                    if (t_2) {
                      const auto x_3 = kw_load_even<W>(p_x + c * 12544 + h * 224 + p * 112 + w * 2 + q - 113);
                      max1[u] = kw_max(x_3, max1[u]);
                    }
                  }
                }
              }
              KW_UNROLL(4)
              for (int u = 0; u < U; ++u) {
                const long w = w_0v + u * W;
                const auto y__4 = max1[u];
                kw_store(p_y + c * 3136 + h * 56 + w, y__4);
              }
            }
            for (long w = 0; w < 1; ++w) {
              float max5 = -__builtin_inff();
              KW_UNROLL(3)
              for (long p = 0; p < 3; ++p) {
                const auto t_6 = h * 2 + p - 1 >= 0;
                KW_UNROLL(3)
                for (long q = 0; q < 3; ++q) {
                  if (t_6 && (w * 2 + q - 1 >= 0)) {
                    const auto x_7 = p_x[c * 12544 + h * 224 + p * 112 + w * 2 + q - 113];
                    max5 = kw_max(x_7, max5);
                  }
                }
              }
              p_y[c * 3136 + h * 56 + w] = max5;
            }
          }
        }
      }
    }
  }
}


extern "C" void kw_run_0(void* const* t, char* workspace, char* packed, const kw_pool* pool) {
  kw_frame frame = {t, workspace, packed, pool, 0, true};
  kw_launch(nest_n_y, &frame, 10, 0);
}
