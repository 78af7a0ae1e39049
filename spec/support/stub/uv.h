typedef struct uv_loop_s uv_loop_t;
typedef struct uv_async_s uv_async_t;
