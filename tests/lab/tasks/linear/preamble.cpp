struct kw_pool;
enum { M = 33, N = 29, K = 47 };
