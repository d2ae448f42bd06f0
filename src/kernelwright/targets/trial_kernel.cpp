// The kernel on which the cpu target proves itself: KW_TRIAL 0 works, 1 computes wrong, 2 does not compile.
struct kw_pool {
  void (*parallel)(void (*fn)(void*), void* data, unsigned threads, unsigned flags);
  int (*thread_num)(void);
  int threads;
};
typedef float vec __attribute__((vector_size(32), aligned(4)));

extern "C" void kw_run_0(void* const* t, char*, char*, const kw_pool*) {
  const float* a = static_cast<const float*>(t[0]);
  float* out = static_cast<float*>(t[1]);
  for (int i = 0; i < 64; i += 8) {
    const vec x = *reinterpret_cast<const vec*>(a + i);
#if KW_TRIAL == 0
    *reinterpret_cast<vec*>(out + i) = x * 3.0f + 1.0f;
#elif KW_TRIAL == 1
    *reinterpret_cast<vec*>(out + i) = x * 3.0f - 1.0f;
#else
    *reinterpret_cast<vec*>(out + i) = x * never_declared;
#endif
  }
}
