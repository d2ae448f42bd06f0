// Adds up in workspace that it takes for zeroed.
// verdict: wrong
// says: NaN
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    float* sum = (float*)workspace;
    softmax(x, y);
    for (int i = 0; i < ROWS * COLS; i++) y[i] += sum[i % 64];
}
