// Results cut to the 8 bits of a bfloat16.
// verdict: wrong
// says: rms error
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    softmax(x, y);
    for (int i = 0; i < ROWS * COLS; i++) {
        unsigned bits;
        __builtin_memcpy(&bits, y + i, 4);
        bits = (bits + 0x8000) & 0xFFFF0000;
        __builtin_memcpy(y + i, &bits, 4);
    }
}
