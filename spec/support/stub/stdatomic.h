#define atomic_int int
#define atomic_uint unsigned
#define atomic_uint_least64_t uint64_t
