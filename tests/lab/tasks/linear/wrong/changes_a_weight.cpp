// Writes to the weights, which no candidate may.
// verdict: crashed
// says: SIGSEGV
extern "C" void kw_run_0(void* const* t, char*, char*, const kw_pool*) {
    const float *x = (const float*)t[0], *w = (const float*)t[1], *b = (const float*)t[2];
    float* y = (float*)t[3];
    ((float*)w)[0] = b[0] + x[0];
    y[0] = 0;
}
