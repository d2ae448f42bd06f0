// The sum from the other end, in double.
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    for (int r = 0; r < ROWS; r++) {
        double sum = 0, top = x[r * COLS];
        for (int i = 0; i < COLS; i++) top = x[r * COLS + i] > top || x[r * COLS + i] != x[r * COLS + i] ? x[r * COLS + i] : top;
        for (int i = COLS - 1; i >= 0; i--) sum += __builtin_exp(x[r * COLS + i] - top);
        for (int i = 0; i < COLS; i++) y[r * COLS + i] = (float)(__builtin_exp(x[r * COLS + i] - top) / sum);
    }
}
