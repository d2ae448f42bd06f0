struct kw_pool {
    void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
    int (*thread_num)(void);
    int threads;
};
enum { ROWS = 96, COLS = 130 };
static void softmax_row(const float* x, float* y) {
    float top = x[0], sum = 0;
    for (int i = 1; i < COLS; i++) top = x[i] > top || x[i] != x[i] ? x[i] : top;
    for (int i = 0; i < COLS; i++) sum += y[i] = __builtin_expf(x[i] - top);
    for (int i = 0; i < COLS; i++) y[i] /= sum;
}
static void softmax(const float* x, float* y) {
    for (int r = 0; r < ROWS; r++) softmax_row(x + r * COLS, y + r * COLS);
}
