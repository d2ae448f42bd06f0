// A lane that is scaled twice.
// verdict: wrong
// says: one in 8 (index % 8 == 7)
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    softmax(x, y);
    for (int r = 7; r < ROWS; r += 8)
        for (int i = 0; i < COLS; i++) y[r * COLS + i] *= 1.25f;
}
