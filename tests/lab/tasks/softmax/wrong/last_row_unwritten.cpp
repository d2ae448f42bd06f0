// One row short: nothing is written there.
// verdict: wrong
// says: never written; axis 0: only the last of 96
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    for (int r = 0; r < ROWS - 1; r++) softmax_row(x + r * COLS, y + r * COLS);
}
