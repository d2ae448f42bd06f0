//@ kw_load: kw_convert
// W consecutive elements, of any alignment. 16-bit floats are widened to float.
template <int W, class T> KW_INLINE auto kw_load(const T* p) {
  vec<T, W> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

//@ kw_load@bf16: kw_load kw_from_bf16
template <int W> KW_INLINE vec<float, W> kw_load(const bf16* p) {
  return kw_from_bf16_bits(kw_convert<vec<i32, W>>(kw_load<W>((const unsigned short*)p)));
}

//@ kw_load@f16: kw_load kw_from_f16
template <int W> KW_INLINE vec<float, W> kw_load(const f16* p) {
  return kw_from_f16_bits(kw_convert<vec<i32, W>>(kw_load<W>((const unsigned short*)p)));
}

//@ kw_load_part: kw_convert
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

//@ kw_load_part@bf16: kw_load_part kw_from_bf16
template <int W> KW_INLINE vec<float, W> kw_load_part(const bf16* p, long n) {
  return kw_from_bf16_bits(kw_convert<vec<i32, W>>(kw_load_part<W>((const unsigned short*)p, n)));
}

//@ kw_load_part@f16: kw_load_part kw_from_f16
template <int W> KW_INLINE vec<float, W> kw_load_part(const f16* p, long n) {
  return kw_from_f16_bits(kw_convert<vec<i32, W>>(kw_load_part<W>((const unsigned short*)p, n)));
}

//@ kw_load_even: kw_load
// p[0], p[2], ..., p[2 * (W - 1)], and nothing beyond is read.
template <class V, int... L> KW_INLINE V kw_even(V a, V b, kw_list<L...>) {
  return __builtin_shufflevector(a, b, (2 * L < kw_count<V> ? 2 * L : 2 * L + 1)...);
}
template <int W, class T> KW_INLINE auto kw_load_even(const T* p) {
  return kw_even(kw_load<W>(p), kw_load<W>(p + W - 1), kw_indices<W>());
}

//@ kw_load_stride: kw_lanes
// p[0], p[step], ...: n elements, the other lanes zero.
template <int W, class T> KW_INLINE auto kw_load_stride(const T* p, long step, int) {
  return kw_lanes<vec<T, W>>([&](long l) { return p[l * step]; });
}
template <int W, class T> KW_INLINE auto kw_load_stride(const T* p, long step, long n) {
  return kw_lanes<vec<T, W>>(n, [&](long l) { return p[l * step]; });
}

//@ kw_load_stride@bf16: kw_load_stride kw_from_bf16
template <int W, class N> KW_INLINE vec<float, W> kw_load_stride(const bf16* p, long step, N n) {
  return kw_from_bf16_bits(kw_convert<vec<i32, W>>(kw_load_stride<W>((const unsigned short*)p, step, n)));
}

//@ kw_load_stride@f16: kw_load_stride kw_from_f16
template <int W, class N> KW_INLINE vec<float, W> kw_load_stride(const f16* p, long step, N n) {
  return kw_from_f16_bits(kw_convert<vec<i32, W>>(kw_load_stride<W>((const unsigned short*)p, step, n)));
}

//@ kw_narrow: kw_convert
// Lanes in the form in which *p stores them.
template <class T, class V> KW_INLINE auto kw_narrow(const T*, V v) {
  if constexpr (sizeof(T) == sizeof(kw_element<V>)) return (vec<T, kw_count<V>>)v;
  else return kw_convert<vec<T, kw_count<V>>>(v);
}

//@ kw_narrow@bf16: kw_narrow kw_to_bf16
template <class V> KW_INLINE vec<unsigned short, kw_count<V>> kw_narrow(const bf16*, V v) {
  return kw_convert<vec<unsigned short, kw_count<V>>>(kw_to_bf16_bits(v));
}

//@ kw_narrow@f16: kw_narrow kw_to_f16
template <class V> KW_INLINE vec<unsigned short, kw_count<V>> kw_narrow(const f16*, V v) {
  return kw_convert<vec<unsigned short, kw_count<V>>>(kw_to_f16_bits(v));
}

//@ kw_store: kw_narrow
template <class T, class V> KW_INLINE void kw_store(T* p, V v) {
  const auto x = kw_narrow(p, v);
  __builtin_memcpy((void*)p, &x, sizeof x);
}

//@ kw_store_part: kw_narrow
// The first n lanes.
template <class T, class V> KW_INLINE void kw_store_part(T* p, V v, long n) {
  const auto x = kw_narrow(p, v);
#if defined(KW_ISA_AVX2) || defined(KW_ISA_AVX512)
  if constexpr (sizeof(x[0]) == 4 && kw_count<V> == 8) {
    const vec<i32, 8> mask = vec<i32, 8>{0, 1, 2, 3, 4, 5, 6, 7} < (i32)n;
    __builtin_ia32_maskstoreps256((vec<float, 8>*)p, mask, (vec<float, 8>)x);
    return;
  }
#endif
  __builtin_memcpy((void*)p, &x, n * sizeof(x[0]));
}

//@ kw_store_stride: kw_narrow
// p[0], p[step], ...: n lanes.
template <class T, class V> KW_INLINE void kw_store_stride(T* p, long step, V v, long n) {
  const auto x = kw_narrow(p, v);
  for (long l = 0; l < n; ++l) {
    const auto one = x[l];
    __builtin_memcpy((void*)(p + l * step), &one, sizeof one);
  }
}

//@ kw_stream: kw_store
// A store past the caches where p is aligned to the vector, an ordinary one elsewhere. Needs a fence at the end.
template <class T, class V> KW_INLINE void kw_stream(T* p, V v) {
  const auto x = kw_narrow(p, v);
  if (((unsigned long)p & (sizeof x - 1)) != 0) {
    __builtin_memcpy((void*)p, &x, sizeof x);
    return;
  }
#if defined(__clang__)
  __builtin_nontemporal_store(x, (decltype(kw_narrow(p, v))*)p);
#else
#if defined(KW_ISA_AVX512)
  if constexpr (sizeof x == 64) return __builtin_ia32_movntps512((float*)p, (vec<float, 16>)x);
#endif
#if defined(KW_ISA_AVX512) || defined(KW_ISA_AVX2)
  if constexpr (sizeof x == 32) return __builtin_ia32_movntps256((float*)p, (vec<float, 8>)x);
#endif
  if constexpr (sizeof x == 16) return __builtin_ia32_movntps((float*)p, (vec<float, 4>)x);
  __builtin_memcpy((void*)p, &x, sizeof x);
#endif
}
