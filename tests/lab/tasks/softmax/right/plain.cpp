// Left to right in float.
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    softmax(x, y);
}
