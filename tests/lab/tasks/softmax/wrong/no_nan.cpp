// Right for numbers: NaN in a row gives numbers (a maximum that overlooks it, a sum that drops it).
// verdict: wrong
// thorough
// says: NaN or Inf
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    for (int r = 0; r < ROWS; r++, x += COLS, y += COLS) {
        float top = x[0], sum = 0;
        for (int i = 1; i < COLS; i++) top = x[i] > top ? x[i] : top;
        for (int i = 0; i < COLS; i++) {
            y[i] = __builtin_expf(x[i] - top);
            sum += y[i] == y[i] ? y[i] : 0;
        }
        for (int i = 0; i < COLS; i++) y[i] = y[i] == y[i] ? y[i] / sum : 0;
    }
}
