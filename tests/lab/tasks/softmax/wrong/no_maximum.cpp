// Overflows for large inputs, which the own ones of the task never are.
// verdict: wrong
// thorough
// says: case large
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    for (int r = 0; r < ROWS; r++, x += COLS, y += COLS) {
        float sum = 0;
        for (int i = 0; i < COLS; i++) sum += y[i] = __builtin_expf(x[i]);
        for (int i = 0; i < COLS; i++) y[i] /= sum;
    }
}
