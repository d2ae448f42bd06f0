// A hand-written kernel for the runner's tests. Slots: x, w, mid, y, threads. Packed: 3 * w.
// Step 0: mid = x + packed, in parallel by chunks from a counter. Step 1: y = 2 * z (z is an ATen result), counts the threads seen.
struct kw_pool {
  void (*parallel)(void (*fn)(void*), void* data, unsigned threads, unsigned flags);
  int (*thread_num)(void);
  int threads;
};

constexpr int N = 64;

struct job {
  const float *x, *packed;
  float* mid;
  char* workspace;
  const kw_pool* pool;
  int next;
};

static void work(void* data) {
  job& j = *static_cast<job*>(data);
  const int thread = j.pool->thread_num ? j.pool->thread_num() : 0;
  j.workspace[64 * thread] = 1;
  for (int i; (i = __atomic_fetch_add(&j.next, 1, __ATOMIC_RELAXED)) < N;)
    j.mid[i] = j.x[i] + j.packed[i];
}

static void start(job& j) {
  if (j.pool->parallel)
    j.pool->parallel(work, &j, j.pool->threads, 0);
  else
    work(&j);
}

extern "C" void kw_prepare(void* const* t, char* packed, const kw_pool*) {
  for (int i = 0; i < N; i++) reinterpret_cast<float*>(packed)[i] = 3 * static_cast<const float*>(t[1])[i];
}

extern "C" void kw_run_0(void* const* t, char* workspace, char* packed, const kw_pool* pool) {
  for (int i = 0; i < pool->threads; i++) workspace[64 * i] = 0;
  job j{static_cast<const float*>(t[0]), reinterpret_cast<const float*>(packed), static_cast<float*>(t[2]), workspace, pool, 0};
  start(j);
}

extern "C" void kw_run_1(void* const* t, char* workspace, char*, const kw_pool* pool) {
  const float* z = static_cast<const float*>(t[3]);
  float* y = static_cast<float*>(t[4]);
  for (int i = 0; i < N; i++) y[i] = 2 * z[i];
  int* seen = static_cast<int*>(t[5]);
  *seen = 0;
  for (int i = 0; i < pool->threads; i++) *seen += workspace[64 * i];
}

extern "C" void kw_run_nothing(void* const*, char*, char*, const kw_pool*) {}

extern "C" void kw_run_address(void* const* t, char* workspace, char* packed, const kw_pool* pool) {
  long* out = static_cast<long*>(t[0]);
  out[0] = reinterpret_cast<long>(workspace) % 64;
  out[1] = reinterpret_cast<long>(packed) % 64;
  out[2] = pool->threads;
  out[3] = pool->parallel != nullptr;
}
