#define atomic_int int
#define atomic_uint unsigned
