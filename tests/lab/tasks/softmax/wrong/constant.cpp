// The mean of every softmax, whatever the input.
// verdict: wrong
// says: elements differ
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    for (int i = 0; i < ROWS * COLS; i++) y[i] = 1.0f / COLS;
}
