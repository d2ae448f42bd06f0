// Has no function of the expected name.
// verdict: crashed
// says: kw_run_0
extern "C" void kw_run(void* const* t, char*, char*, const kw_pool*) { softmax((const float*)t[0], (float*)t[1]); }
