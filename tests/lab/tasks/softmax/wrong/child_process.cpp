// A child in a session of its own should do the work, and would outlive the call.
// verdict: wrong
// says: never written
extern "C" int fork(void);
extern "C" int setsid(void);
extern "C" int usleep(unsigned);
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    if (fork() == 0) {
        setsid();
        softmax(x, y);
        for (;;) usleep(1000);
    }
}
