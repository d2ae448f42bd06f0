// Exact while it is checked, then one value is off.
// verdict: wrong
// says: 1 of 12480 elements differ
static int calls;
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    softmax(x, y);
    if (calls++ >= 8) y[777] += 0.5f;
}
