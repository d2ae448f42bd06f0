// cumsum_rows: printed by Kernelwright. Schedule:
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

// Nest n_y. Tile loops: j 0..1000 by 128; the first 1 in parallel, 1 tiles a chunk.
// Stage 0: vectors along j by 4, loops i.
static void nest_n_y(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const float* __restrict const p_x = (const float*)frame.t[0];
  float* __restrict const p_y = (float*)frame.t[1];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 1, __ATOMIC_RELAXED)) < 8;) {
    const long tile = tile_c;
    const long j_0 = tile * 128, j_end = (j_0 + 128 < 1000 ? j_0 + 128 : 1000);
    // y[i, j]: running sum over i (y)
    {
      constexpr int W = kw_bytes / 4;
      constexpr int U = kw_pick(104, W, 4);
      for (long j_v = j_0; j_v < j_end; j_v += U * W) {
        const long j_0v = j_v + U * W <= j_end ? j_v : j_end - U * W;
        vec<float, W> sum1[U] = {};
        for (long i = 0; i < 64; ++i) {
          KW_UNROLL(4)
          for (int u = 0; u < U; ++u) {
            const long j = j_0v + u * W;
            const auto x_2 = kw_load<W>(p_x + i * 1000 + j);
            sum1[u] += x_2;
            const auto y__3 = sum1[u];
            kw_store(p_y + i * 1000 + j, y__3);
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
