//@ kw_least:
KW_INLINE long kw_least(long a, long b) { return a < b ? a : b; }

//@ kw_floor_div:
// a / b rounded down, b > 0.
KW_INLINE long kw_floor_div(long a, long b) { return (a >= 0 ? a : a - b + 1) / b; }

//@ kw_dot: kw_load kw_store kw_splat
// One register tile: c[i][j] (+)= sum over p < k of a[i * a_row + p * a_k] * b[p * b_k + j], MR rows and NR vectors of W.
// Sums of 512 products are added up, which keeps the rounding error near that of a blocked library.
template <class T, int W, int MR, int NR>
static void kw_dot(long k, const T* a, long a_row, long a_k, const T* b, long b_k, T* c, long c_row, bool first) {
  typedef vec<T, W> V;
  do {
    const long part = k < 512 ? k : 512;
    V acc[MR][NR];
    KW_UNROLL(32) for (int i = 0; i < MR; ++i)
      KW_UNROLL(8) for (int j = 0; j < NR; ++j) acc[i][j] = V{};
    for (long p = 0; p < part; ++p, a += a_k, b += b_k) {
      V bs[NR];
      KW_UNROLL(8) for (int j = 0; j < NR; ++j) bs[j] = kw_load<W>(b + j * W);
      KW_UNROLL(32) for (int i = 0; i < MR; ++i) {
        const V as = kw_splat<V>(a[i * a_row]);
        KW_UNROLL(8) for (int j = 0; j < NR; ++j) acc[i][j] = acc[i][j] + as * bs[j];
      }
    }
    KW_UNROLL(32) for (int i = 0; i < MR; ++i)
      KW_UNROLL(8) for (int j = 0; j < NR; ++j) {
        T* to = c + i * c_row + j * W;
        kw_store(to, first ? acc[i][j] : kw_load<W>((const T*)to) + acc[i][j]);
      }
    first = false;
    k -= part;
  } while (k > 0);
}

//@ kw_dot_cols: kw_dot
// The register tile that is `vectors` wide (1..NR).
template <class T, int W, int NR, int MR, class... Args> KW_INLINE void kw_dot_cols(long vectors, Args... args) {
  if constexpr (NR > 1) {
    if (vectors < NR) return kw_dot_cols<T, W, NR - 1, MR>(vectors, args...);
  }
  kw_dot<T, W, MR, NR>(args...);
}

//@ kw_dot_rows: kw_dot_cols
// The register tile of `rows` rows, one of those listed, `vectors` wide.
template <class T, int W, int NR, int... MR, class... Args> KW_INLINE void kw_dot_rows(long rows, long vectors, Args... args) {
  (void)((rows == MR && (kw_dot_cols<T, W, NR, MR>(vectors, args...), true)) || ...);
}

//@ kw_transpose: kw_convert
// t[i][j] <-> t[j][i] for a square of W x W lanes: log2(W) rounds that exchange blocks of S lanes.
template <int S, class V, int... L> KW_INLINE V kw_mix_low(V a, V b, kw_list<L...>) {
  return __builtin_shufflevector(a, b, ((L & S) ? L - S + kw_count<V> : L)...);
}
template <int S, class V, int... L> KW_INLINE V kw_mix_high(V a, V b, kw_list<L...>) {
  return __builtin_shufflevector(a, b, ((L & S) ? L + kw_count<V> : L + S)...);
}
template <int S, class V> KW_INLINE void kw_transpose_round(V* t) {
  constexpr int W = kw_count<V>;
  if constexpr (S < W) {
    KW_UNROLL(16) for (int i = 0; i < W; ++i)
      if (!(i & S)) {
        const V a = t[i], b = t[i + S];
        t[i] = kw_mix_low<S>(a, b, kw_indices<W>());
        t[i + S] = kw_mix_high<S>(a, b, kw_indices<W>());
      }
    kw_transpose_round<2 * S>(t);
  }
}
template <class V> KW_INLINE void kw_transpose(V* t) { kw_transpose_round<1>(t); }

//@ kw_copy_tail: kw_load_part kw_store
// The last `cols` columns of k rows, widened with zeros to `width` columns.
template <class T, int W>
static void kw_copy_tail(long k, const T* from, long from_row, long cols, T* to, long width) {
  for (long p = 0; p < k; ++p)
    for (long j = 0; j < width; j += W)
      kw_store(to + p * width + j, kw_load_part<W>(from + p * from_row + j, cols - j < 0 ? 0 : cols - j < W ? cols - j : W));
}
