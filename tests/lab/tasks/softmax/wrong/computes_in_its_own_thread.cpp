// Right, but a thread stays behind that could do work outside of the clock.
// verdict: wrong
// says: thread
extern "C" int pthread_create(unsigned long*, const void*, void* (*)(void*), void*);
extern "C" int usleep(unsigned);
static void* stay(void*) {
    for (;;) usleep(1000);
}
extern "C" void kw_run_0(void* const* t, char* workspace, char*, const kw_pool* pool) {
    const float* x = (const float*)t[0];
    float* y = (float*)t[1];
    static unsigned long id;
    softmax(x, y);
    if (!id) pthread_create(&id, 0, stay, 0);
}
