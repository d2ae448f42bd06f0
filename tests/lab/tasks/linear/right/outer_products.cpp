// K outermost and backwards: a sum of rank-one updates, the bias last.
extern "C" void kw_run_0(void* const* t, char*, char*, const kw_pool*) {
    const float *x = (const float*)t[0], *w = (const float*)t[1], *b = (const float*)t[2];
    float* y = (float*)t[3];
    for (int i = 0; i < M * N; i++) y[i] = 0;
    for (int k = K - 1; k >= 0; k--)
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) y[m * N + n] += x[m * K + k] * w[n * K + k];
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = y[m * N + n] + b[n];
            y[m * N + n] = sum < 0 ? 0 : sum;
        }
}
