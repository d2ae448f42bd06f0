// One dot product an element.
extern "C" void kw_run_0(void* const* t, char*, char*, const kw_pool*) {
    const float *x = (const float*)t[0], *w = (const float*)t[1], *b = (const float*)t[2];
    float* y = (float*)t[3];
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = b[n];
            for (int k = 0; k < K; k++) sum += x[m * K + k] * w[n * K + k];
            y[m * N + n] = sum < 0 ? 0 : sum;
        }
}
