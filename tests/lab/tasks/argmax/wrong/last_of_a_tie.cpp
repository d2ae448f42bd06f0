// The last place of a tie, where the reference gives the first.
// verdict: wrong
// says: output 0
extern "C" void kw_run_0(void* const* t, char*, char*, const kw_pool*) {
    const float* x = (const float*)t[0];
    long* at = (long*)t[1];
    float* top = (float*)t[2];
    for (int r = 0; r < ROWS; r++, x += COLS) {
        int best = 0;
        for (int i = 1; i < COLS; i++) best = x[i] >= x[best] ? i : best;
        at[r] = best, top[r] = x[best];
    }
}
