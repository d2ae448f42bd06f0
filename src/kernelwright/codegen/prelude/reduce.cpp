//@ kw_flush:
// Blocked summation: a finished block goes to the total.
template <class T> KW_INLINE void kw_flush(T& total, T& sum) {
  total += sum;
  sum = T{};
}

//@ kw_halves:
template <class V, int... L> KW_INLINE auto kw_low(V v, kw_list<L...>) { return __builtin_shufflevector(v, v, L...); }
template <class V, int... L> KW_INLINE auto kw_high(V v, kw_list<L...>) {
  return __builtin_shufflevector(v, v, (kw_count<V> / 2 + L)...);
}
// Joins the lanes of v pairwise with op, which takes vectors and scalars.
template <class V, class F> KW_INLINE kw_element<V> kw_fold(V v, F op) {
  if constexpr (kw_count<V> == 2) return op((kw_element<V>)v[0], (kw_element<V>)v[1]);
  else return kw_fold(op(kw_low(v, kw_indices<kw_count<V> / 2>()), kw_high(v, kw_indices<kw_count<V> / 2>())), op);
}

//@ kw_fold_sum: kw_halves
template <class V> KW_INLINE kw_element<V> kw_fold_sum(V v) {
  return kw_fold(v, [](auto a, auto b) { return (decltype(a))(a + b); });
}

//@ kw_fold_prod: kw_halves
template <class V> KW_INLINE kw_element<V> kw_fold_prod(V v) {
  return kw_fold(v, [](auto a, auto b) { return (decltype(a))(a * b); });
}

//@ kw_fold_max: kw_halves kw_max
template <class V> KW_INLINE kw_element<V> kw_fold_max(V v) {
  return kw_fold(v, [](auto a, auto b) { return kw_max(a, b); });
}

//@ kw_fold_min: kw_halves kw_min
template <class V> KW_INLINE kw_element<V> kw_fold_min(V v) {
  return kw_fold(v, [](auto a, auto b) { return kw_min(a, b); });
}

//@ kw_fold_any: kw_halves
template <class V> KW_INLINE bool kw_fold_any(V v) {
  return kw_fold(v, [](auto a, auto b) { return (decltype(a))(a | b); }) != 0;
}

//@ kw_fold_all: kw_halves
template <class V> KW_INLINE bool kw_fold_all(V v) {
  return kw_fold(v, [](auto a, auto b) { return (decltype(a))(a & b); }) != 0;
}

//@ kw_best:
// Keeps the best value seen and its position; the first NaN beats everything, the first of equals wins.
// Max: larger is better. Scalars and vectors alike; positions have lanes as wide as the values'.
template <bool Max, class V, class I> KW_INLINE void kw_best(V& best, I& where, V x, I at) {
  const auto better = Max ? x > best : x < best;
  const auto take = (better | (x != x)) & (best == best);
  best = take ? x : best;
  where = take ? at : where;
}

//@ kw_fold_best: kw_halves
// The winner over all lanes of all slots: NaN beats everything, the lower position wins among equals.
template <bool Max, class V, class I> KW_INLINE void kw_join_best(V& best, I& where, V x, I at) {
  const auto better = Max ? x > best : x < best;
  const auto nan = (x != x) & (best == best);
  const auto equal = (x == best) | ((x != x) & (best != best));
  const auto take = nan | (better & (best == best)) | (equal & (at < where));
  best = take ? x : best;
  where = take ? at : where;
}
template <bool Max, class V, class I> KW_INLINE i64 kw_fold_lanes(V best, I where) {
  if constexpr (kw_count<V> == 2) {
    auto value = best[0];
    auto at = where[0];
    kw_join_best<Max>(value, at, (kw_element<V>)best[1], (kw_element<I>)where[1]);
    return at;
  } else {
    constexpr auto half = kw_indices<kw_count<V> / 2>();
    auto value = kw_low(best, half);
    auto at = kw_low(where, half);
    kw_join_best<Max>(value, at, kw_high(best, half), kw_high(where, half));
    return kw_fold_lanes<Max>(value, at);
  }
}
template <bool Max, class V, class I, int U> KW_INLINE i64 kw_fold_best(const V (&best)[U], const I (&where)[U]) {
  V value = best[0];
  I at = where[0];
  for (int u = 1; u < U; ++u) kw_join_best<Max>(value, at, best[u], where[u]);
  return kw_fold_lanes<Max>(value, at);
}

//@ kw_shift:
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

//@ kw_prefix: kw_shift
// Inclusive prefixes of the lanes under op, whose neutral element is `neutral`, in log2(N) steps.
template <bool Down, int K = 1, class V, class F> KW_INLINE V kw_prefix(V v, V neutral, F op) {
  if constexpr (K >= kw_count<V>) return v;
  else return kw_prefix<Down, K * 2>(op(v, kw_shift<Down, K>(v, neutral)), neutral, op);
}
