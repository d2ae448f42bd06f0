// Measures the limits of the machine it runs on. Built once by targets/machine.py for the host's own instruction set.
//
// Prints one line a sample: "fma_core GFLOPS", "fma_all GFLOPS", "amx GFLOPS", "fork_join MICROSECONDS", "share CPU/WALL" (below 1:
// others use the cores) and "bandwidth BYTES COPY STREAM READ" (GB/s; copy and stream count reads and writes). It judges nothing: the
// caller reduces the samples. On a busy machine it takes fewer samples rather than more time.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

#if defined(KW_ISA_AVX512)
constexpr int kVectorBytes = 64;
constexpr int kChains = 24;
#elif defined(KW_ISA_AVX2)
constexpr int kVectorBytes = 32;
constexpr int kChains = 12;
#else
constexpr int kVectorBytes = 16;
constexpr int kChains = 12;
#endif
constexpr int kLanes = kVectorBytes / 4;
typedef float Vector __attribute__((vector_size(kVectorBytes)));

double seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
double wall() { return seconds(CLOCK_MONOTONIC); }
double cpu() { return seconds(CLOCK_THREAD_CPUTIME_ID); }

// Keeps a value in a register and hides it from the optimiser.
inline void hide(Vector& v) {
#if defined(__x86_64__)
  asm volatile("" : "+x"(v));
#else
  asm volatile("" : "+w"(v));
#endif
}

// Threads that are started once and then run one function each, as close together as the machine allows.
class Team {
 public:
  explicit Team(int size) : size_(size) {
    for (int i = 1; i < size; ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  ~Team() {
    work_ = nullptr;
    generation_.fetch_add(1);
    for (auto& t : threads_) t.join();
  }
  void run(const std::function<void(int)>& work) {
    work_ = &work;
    left_.store(size_ - 1);
    generation_.fetch_add(1);
    work(0);
    spin([this] { return left_.load() == 0; });
  }
  int size() const { return size_; }

 private:
  template <class Done> static void spin(Done done) {
    for (long n = 0; !done(); ++n) {
      if (n > 20000) std::this_thread::yield();
    }
  }
  void serve(int index) {
    for (long seen = 0;; ++seen) {
      spin([this, seen] { return generation_.load() > seen; });
      if (work_ == nullptr) return;
      (*work_)(index);
      left_.fetch_sub(1);
    }
  }
  int size_;
  std::vector<std::thread> threads_;
  std::atomic<long> generation_{0};
  std::atomic<int> left_{0};
  const std::function<void(int)>* work_ = nullptr;
};

// Fused multiply-adds on independent chains; GFLOP/s by the thread's own CPU time, so that other processes do not count.
double fma_rate(double target_seconds) {
  Vector acc[kChains];
  for (int c = 0; c < kChains; ++c) acc[c] = Vector{} + 1.0f + float(c) * 1e-3f;
  Vector scale = Vector{} + 0.999f, shift = Vector{} + 1e-3f;
  hide(scale);
  hide(shift);
  double flops = 0, start = cpu(), used = 0;
  do {
    for (int i = 0; i < 4096; ++i) {
#pragma GCC unroll 24
      for (int c = 0; c < kChains; ++c) acc[c] = acc[c] * scale + shift;
    }
    for (int c = 0; c < kChains; ++c) hide(acc[c]);
    flops += 4096.0 * kChains * kLanes * 2;
    used = cpu() - start;
  } while (used < target_seconds);
  return flops / used * 1e-9;
}

#if defined(__x86_64__) && defined(KW_AMX)
struct alignas(64) TileConfig {
  uint8_t palette, start_row, reserved[14];
  uint16_t column_bytes[16];
  uint8_t rows[16];
};

bool amx_granted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// The configuration is loaded by inline assembly over the whole struct: g++ 12's intrinsic declares only 8 of its 64 bytes as read, so
// that other stores may be dropped.
__attribute__((target("amx-tile,amx-bf16"))) double amx_rate(double target_seconds) {
  TileConfig config;
  memset(&config, 0, sizeof config);
  config.palette = 1;
  for (int i = 0; i < 8; ++i) {
    config.rows[i] = 16;
    config.column_bytes[i] = 64;
  }
  alignas(64) static thread_local uint8_t zeros[1024];
  asm volatile("ldtilecfg %0" : : "m"(config) : "memory");
  asm volatile("tileloadd (%0,%1,1), %%tmm4\n\ttileloadd (%0,%1,1), %%tmm5\n\t"
               "tileloadd (%0,%1,1), %%tmm6\n\ttileloadd (%0,%1,1), %%tmm7\n\t"
               "tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3"
               : : "r"(zeros), "r"(64L) : "memory");
  double flops = 0, start = cpu(), used = 0;
  do {
    for (int i = 0; i < 1024; ++i) {
      asm volatile("tdpbf16ps %tmm6, %tmm4, %tmm0\n\ttdpbf16ps %tmm7, %tmm4, %tmm1\n\t"
                   "tdpbf16ps %tmm6, %tmm5, %tmm2\n\ttdpbf16ps %tmm7, %tmm5, %tmm3");
    }
    flops += 1024.0 * 4 * 16 * 16 * 32 * 2;
    used = cpu() - start;
  } while (used < target_seconds);
  asm volatile("tilerelease");
  return flops / used * 1e-9;
}
#else
bool amx_granted() { return false; }
double amx_rate(double) { return 0; }
#endif

// The sum of the threads' rates, each by its own CPU time, and the share of the cores that they got meanwhile.
template <class Rate> void team_rate(Team& team, const char* name, Rate rate) {
  std::vector<double> each(team.size()), share(team.size());
  team.run([&](int i) {
    const double wall_start = wall(), cpu_start = cpu();
    each[i] = rate();
    share[i] = (cpu() - cpu_start) / (wall() - wall_start);
  });
  double sum = 0, least = 1;
  for (double r : each) sum += r;
  for (double s : share) least = std::min(least, s);
  printf("%s %.3f\nshare %.3f\n", name, sum, least);
}

void copy(float* to, const float* from, size_t count) {
  for (size_t i = 0; i < count; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      Vector v = *reinterpret_cast<const Vector*>(from + i + u * kLanes);
      hide(v);  // or the compiler makes a memcpy of the loop, which chooses its stores itself
      *reinterpret_cast<Vector*>(to + i + u * kLanes) = v;
    }
  }
}

void stream(float* to, const float* from, size_t count) {
#if defined(KW_ISA_AVX512)
  for (size_t i = 0; i < count; i += 16) _mm512_stream_ps(to + i, _mm512_load_ps(from + i));
  _mm_sfence();
#elif defined(KW_ISA_AVX2)
  for (size_t i = 0; i < count; i += 8) _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
  _mm_sfence();
#elif defined(__x86_64__)
  for (size_t i = 0; i < count; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
  _mm_sfence();
#else
  copy(to, from, count);  // no non-temporal store here: what streams reach is what ordinary stores reach
#endif
}

void read(float*, const float* from, size_t count) {
  Vector sum[8] = {};
  for (size_t i = 0; i < count; i += 8 * kLanes) {
#pragma GCC unroll 8
    for (int u = 0; u < 8; ++u) sum[u] += *reinterpret_cast<const Vector*>(from + i + u * kLanes);
  }
  for (auto& s : sum) hide(s);
}

float* map_pages(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
  madvise(p, bytes, MADV_HUGEPAGE);
#endif
  return static_cast<float*>(p);
}

// GB/s of `kernel` over `bytes`, split evenly among the team; `traffic` counts how often each byte moves.
double bandwidth(Team& team, void (*kernel)(float*, const float*, size_t), float* to, float* from, size_t bytes, int traffic) {
  const size_t count = bytes / 4 / size_t(team.size()) / 256 * 256;  // whole unrolled steps
  const int passes = int(std::max<size_t>(1, (48u << 20) / bytes));
  double start = wall();
  team.run([&](int i) {
    for (int p = 0; p < passes; ++p) kernel(to + i * count, from + i * count, count);
  });
  return double(count) * 4 * team.size() * traffic * passes / (wall() - start) * 1e-9;
}

typedef void (*GompParallel)(void (*)(void*), void*, unsigned, unsigned);
void nothing(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1, std::memory_order_relaxed); }

// Microseconds of one parallel region that does nothing, right after another: by the OpenMP runtime that generated kernels are given,
// or by this program's own team where there is none.
double fork_join(Team& team, GompParallel parallel, int calls) {
  std::atomic<int> entered{0};
  const std::function<void(int)> work = [&](int) { nothing(&entered); };
  double start = wall();
  for (int i = 0; i < calls; ++i) {
    if (parallel != nullptr) parallel(nothing, &entered, unsigned(team.size()), 0);
    else team.run(work);
  }
  return (wall() - start) / calls * 1e6;
}

// One round over all sizes, the three kernels one after another, so that a slow spell of the machine meets all of them.
void bandwidth_round(Team& team, float* to, float* from, const std::vector<size_t>& sizes) {
  for (size_t bytes : sizes) {
    const double copied = bandwidth(team, copy, to, from, bytes, 2);
    const double streamed = bandwidth(team, stream, to, from, bytes, 2);
    const double had_read = bandwidth(team, read, to, from, bytes, 1);
    printf("bandwidth %zu %.3f %.3f %.3f\n", bytes, copied, streamed, had_read);
  }
}

}  // namespace

// Arguments: threads, libgomp's path or "-", seconds to spend, then the buffer sizes in bytes (ascending).
int main(int count, char** arguments) {
  if (count < 5) return 2;
  const int threads = atoi(arguments[1]);
  const double end = wall() + atof(arguments[3]);
  std::vector<size_t> sizes;
  for (int i = 4; i < count; ++i) sizes.push_back(size_t(atoll(arguments[i])));
  void* library = strcmp(arguments[2], "-") == 0 ? nullptr : dlopen(arguments[2], RTLD_NOW);
  const auto parallel = library ? reinterpret_cast<GompParallel>(dlsym(library, "GOMP_parallel")) : nullptr;
  const bool amx = amx_granted();

  for (int round = 0; round < 5; ++round) printf("fma_core %.3f\n", fma_rate(0.02));
  Team team(threads);
  for (int round = 0; round < 5; ++round) team_rate(team, "fma_all", [] { return fma_rate(0.02); });
  for (int round = 0; amx && round < 5; ++round) team_rate(team, "amx", [] { return amx_rate(0.02); });

  float* from = map_pages(sizes.back());
  float* to = map_pages(sizes.back());
  if (from == nullptr || to == nullptr) return 3;
  bandwidth(team, copy, from, to, sizes.back(), 2);  // first touch of both, by the threads that will use them
  bandwidth(team, copy, to, from, sizes.back(), 2);
  for (int round = 0; round < 1 || (round < 12 && wall() < end); ++round) bandwidth_round(team, to, from, sizes);

  // Last: the OpenMP runtime's threads spin for a while after each region.
  const double last = wall() + 0.3;
  for (int round = 0; round < 3 || (round < 30 && wall() < last); ++round) {
    const double us = fork_join(team, parallel, 25);
    if (round > 0) printf("fork_join %.4f\n", us);
  }
  return 0;
}
