struct kw_pool;
enum { ROWS = 61, COLS = 40 };
