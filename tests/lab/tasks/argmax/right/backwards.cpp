// From the right; a tie goes to the left.
extern "C" void kw_run_0(void* const* t, char*, char*, const kw_pool*) {
    const float* x = (const float*)t[0];
    long* at = (long*)t[1];
    float* top = (float*)t[2];
    for (int r = 0; r < ROWS; r++, x += COLS) {
        int best = COLS - 1;
        for (int i = COLS - 2; i >= 0; i--) best = x[i] != x[i] || (x[best] == x[best] && x[i] >= x[best]) ? i : best;
        at[r] = best, top[r] = x[best];
    }
}
