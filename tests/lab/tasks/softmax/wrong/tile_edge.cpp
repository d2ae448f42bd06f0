// Tiles of 32 columns, the last partial one too short by one.
// verdict: wrong
// says: only the last of 130
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    for (int r = 0; r < ROWS; r++) {
        float row[COLS];
        softmax_row(x + r * COLS, row);
        for (int j = 0; j < COLS - 1; j++) y[r * COLS + j] = row[j];
    }
}
