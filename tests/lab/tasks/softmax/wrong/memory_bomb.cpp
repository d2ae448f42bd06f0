// Takes address space until there is none, and traps.
// verdict: crashed
// says: was killed by SIG
extern "C" void* malloc(unsigned long);
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    for (;;) {
        char* p = (char*)malloc(1 << 26);
        if (!p) __builtin_trap();
        p[0] = 1;
    }
}
