// cumsum: printed by Kernelwright. Schedule:
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

// Lanes moved up by K; fill's lanes come in from below (Down: the other way).
template <int K, class V, int... L> KW_INLINE V kw_shift_of(V v, V fill, kw_list<L...>) {
  return __builtin_shufflevector(v, fill, (L >= K ? L - K : kw_count<V>)...);
}
template <int K, class V, int... L> KW_INLINE V kw_shift_down_of(V v, V fill, kw_list<L...>) {
  return __builtin_shufflevector(v, fill, (L + K < kw_count<V> ? L + K : kw_count<V>)...);
}
template <bool Down, int K, class V> KW_INLINE V kw_shift(V v, V fill) {
  if constexpr (Down) return kw_shift_down_of<K>(v, fill, kw_indices<kw_count<V>>());
  else return kw_shift_of<K>(v, fill, kw_indices<kw_count<V>>());
}

// Inclusive prefixes of the lanes under op, whose neutral element is `neutral`, in log2(N) steps.
template <bool Down, int K = 1, class V, class F> KW_INLINE V kw_prefix(V v, V neutral, F op) {
  if constexpr (K >= kw_count<V>) return v;
  else return kw_prefix<Down, K * 2>(op(v, kw_shift<Down, K>(v, neutral)), neutral, op);
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

// Nest n_y. Tile loops: i 0..64 by 1; the first 1 in parallel, 8 tiles a chunk.
// Stage 0: vectors along j by 4, loops i.
static void nest_n_y(void* data) {
  kw_frame& frame = *(kw_frame*)data;
  const float* __restrict const p_x = (const float*)frame.t[0];
  float* __restrict const p_y = (float*)frame.t[1];
  for (long tile_c; (tile_c = __atomic_fetch_add(&frame.next, 8, __ATOMIC_RELAXED)) < 64;) {
    for (long tile = tile_c; tile < tile_c + 8; ++tile) {
      const long i_0 = tile;
      // y[i, j]: running sum over j (y)
      {
        constexpr int W = kw_bytes / 4;
        {
          const long i = i_0;
          vec<float, W> sum1 = kw_splat<vec<float, W>>(0.0f);
          long j = 0;
          for (; j + W <= 4096; j += W) {
            const auto x_2 = kw_load<W>(p_x + i * 4096 + j);
            const auto prefix3 = kw_prefix<false>(x_2, kw_splat<vec<float, W>>(0.0f), [](auto a, auto b) { return a + b; });
            const auto running4 = sum1 + prefix3;
            sum1 = sum1 + kw_splat<vec<float, W>>(prefix3[W - 1]);
            kw_store(p_y + i * 4096 + j, running4);
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
