// A detached thread writes after the call has returned.
// verdict: wrong
// says: thread
extern "C" int pthread_create(unsigned long*, const void*, void* (*)(void*), void*);
extern "C" int usleep(unsigned);
static const float* from;
static float* to;
static void* late(void*) {
    usleep(3000);
    softmax(from, to);
    return 0;
}
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    unsigned long id;
    from = x, to = y;
    pthread_create(&id, 0, late, 0);
}
