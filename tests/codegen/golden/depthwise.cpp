// depthwise: printed by Kernelwright. Schedule:
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

// Nest n_y. Tile loops: c 0..16 by 1, h 0..56 by 5; the first 2 in parallel, 12 tiles a chunk.
// Stage 0: vectors along w by 4, loops c, h, p, q.
static void nest_n_y(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const float* __restrict const p_x = (const float*)frame.t[0];
  const float* __restrict const p_k = (const float*)frame.t[1];
  float* __restrict const p_y = (float*)frame.t[2];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 12, __ATOMIC_RELAXED)) < 192;) {
    for (long tile = tile_c; tile < tile_c + 12; ++tile) {
      const long c_0 = tile / 12;
      const long h_0 = tile % 12 * 5, h_end = (h_0 + 5 < 56 ? h_0 + 5 : 56);
      // y[c, h, w]: sum over p, q (y)
      {
        constexpr int W = kw_bytes / 4;
        {
          const long c = c_0;
          for (long h = h_0; h < h_end; ++h) {
            constexpr int U = kw_pick(54, W, 4);
            for (long w_v = 1; w_v < 55; w_v += U * W) {
              const long w_0v = w_v + U * W <= 55 ? w_v : 55 - U * W;
              vec<float, W> sum1[U] = {};
              KW_UNROLL(3)
              for (long p = 0; p < 3; ++p) {
                const auto t_2 = h + p - 1 >= 0;
                const auto t_3 = h + p - 1 < 56;
                const auto t_4 = t_2 && t_3;
                KW_UNROLL(3)
                for (long q = 0; q < 3; ++q) {
                  const auto k_6 = p_k[c * 9 + p * 3 + q];
                  KW_UNROLL(4)
                  for (int u = 0; u < U; ++u) {
                    const long w = w_0v + u * W;
                    if (t_4) {
                      const auto x_5 = kw_load<W>(p_x + c * 3136 + h * 56 + p * 56 + q + w - 57);
                      const auto v_7 = x_5 * k_6;
                      sum1[u] += v_7;
                    }
                  }
                }
              }
              KW_UNROLL(4)
              for (int u = 0; u < U; ++u) {
                const long w = w_0v + u * W;
                const auto y__8 = sum1[u];
                kw_store(p_y + c * 3136 + h * 56 + w, y__8);
              }
            }
            for (long w = 0; w < 56; w = w + 1 == 1 ? 55 : w + 1) {
              float sum9 = 0.0f;
              KW_UNROLL(3)
              for (long p = 0; p < 3; ++p) {
                const auto t_10 = h + p - 1 >= 0;
                const auto t_11 = h + p - 1 < 56;
                const auto t_12 = t_10 && t_11;
                KW_UNROLL(3)
                for (long q = 0; q < 3; ++q) {
                  const auto k_14 = p_k[c * 9 + p * 3 + q];
                  if (t_12 && ((q + w - 1 >= 0) && (q + w - 1 < 56))) {
                    const auto x_13 = p_x[c * 3136 + h * 56 + p * 56 + q + w - 57];
                    sum9 += x_13 * k_14;
                  }
                }
              }
              p_y[c * 3136 + h * 56 + w] = sum9;
            }
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
