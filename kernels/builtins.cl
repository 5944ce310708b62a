/* PoCL: first file of the programs that run on a CPU. Declares the built-in functions that the kernels
 * use. PoCL includes clang's opencl-c.h, whose 18,000 lines take most of the time of a small program's
 * build, and a part of it again for every program that PoCL has in its cache. The host defines
 * _OPENCL_H_, the include guard of that header, so the compiler skips it.
 *
 * The attributes are those of opencl-c.h. A function of integers is declared for all scalar types:
 * with fewer, a call could convert its arguments. If a declaration is missing, the build fails, and the
 * host builds the program again with opencl-c.h.
 */
/* Before the result type of a function that few samples reach: PoCL compiles it once instead of at every call. */
#define RARE __attribute__((noinline))
/* Before a loop that few samples reach: PoCL takes longer to compile wider vectors. */
#define VECTORS_OF_4 _Pragma("clang loop vectorize_width(4) interleave_count(1) unroll(disable)")
/* Brings the cache line at `p` nearer; `writes`: 1 if it will be written. Any address will do. */
#define PREFETCH(p, writes) __builtin_prefetch((const void *)(size_t)(p), writes)

/* Before a parameter whose memory no other parameter writes. */
#define RESTRICT restrict

#define BUILTIN __attribute__((overloadable))
#define BUILTIN_CONST __attribute__((overloadable, const))

size_t BUILTIN_CONST get_global_id(uint dimension);
size_t BUILTIN_CONST get_global_size(uint dimension);
size_t BUILTIN_CONST get_local_id(uint dimension);
size_t BUILTIN_CONST get_local_size(uint dimension);
size_t BUILTIN_CONST get_group_id(uint dimension);
void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags flags);

uint BUILTIN atomic_add(volatile __global uint *p, uint value);
uint BUILTIN atomic_add(volatile __local uint *p, uint value);
uint BUILTIN atomic_inc(volatile __global uint *p);
uint BUILTIN atomic_or(volatile __global uint *p, uint bits);
uint BUILTIN atomic_inc(volatile __local uint *p);

#define INTEGER_BUILTINS(type, unsigned_type)                                                     \
    unsigned_type BUILTIN_CONST abs(type x);                                                      \
    type BUILTIN_CONST min(type x, type y);                                                       \
    type BUILTIN_CONST max(type x, type y);                                                       \
    type BUILTIN_CONST clamp(type x, type lowest, type highest);                                  \
    type BUILTIN_CONST mul_hi(type x, type y);                                                    \
    type BUILTIN_CONST rotate(type x, type bits);                                                 \
    type BUILTIN_CONST popcount(type x);                                                          \
    type BUILTIN_CONST clz(type x);
INTEGER_BUILTINS(char, uchar)
INTEGER_BUILTINS(uchar, uchar)
INTEGER_BUILTINS(short, ushort)
INTEGER_BUILTINS(ushort, ushort)
INTEGER_BUILTINS(int, uint)
INTEGER_BUILTINS(uint, uint)
INTEGER_BUILTINS(long, ulong)
INTEGER_BUILTINS(ulong, ulong)
INTEGER_BUILTINS(ushort8, ushort8)
INTEGER_BUILTINS(int8, uint8)
INTEGER_BUILTINS(uint8, uint8)
INTEGER_BUILTINS(short16, ushort16)
INTEGER_BUILTINS(ushort16, ushort16)
INTEGER_BUILTINS(int16, uint16)
INTEGER_BUILTINS(uint16, uint16)

int BUILTIN_CONST any(int8 x);
int8 BUILTIN_CONST select(int8 if_0, int8 if_negative, int8 which);
char16 BUILTIN_CONST convert_char16(short16 x);
char16 BUILTIN_CONST convert_char16(int16 x);
uchar16 BUILTIN_CONST convert_uchar16(ushort16 x);
uchar16 BUILTIN_CONST convert_uchar16(uint16 x);
uchar16 BUILTIN_CONST convert_uchar16(int16 x);
ushort16 BUILTIN_CONST convert_ushort16(uchar16 x);
ushort16 BUILTIN_CONST convert_ushort16(ushort16 x);
ushort16 BUILTIN_CONST convert_ushort16(uint16 x);
ushort16 BUILTIN_CONST convert_ushort16(int16 x);
int8 BUILTIN_CONST convert_int8(uchar8 x);
int8 BUILTIN_CONST convert_int8(ushort8 x);
short16 BUILTIN_CONST convert_short16(int16 x);
int16 BUILTIN_CONST convert_int16(short16 x);
int16 BUILTIN_CONST convert_int16(uchar16 x);
int16 BUILTIN_CONST convert_int16(ushort16 x);
int16 BUILTIN_CONST convert_int16(float16 x);
uint16 BUILTIN_CONST convert_uint16(uchar16 x);
uint16 BUILTIN_CONST convert_uint16(ushort16 x);
uint16 BUILTIN_CONST convert_uint16(ushort16 x);
uint16 BUILTIN_CONST convert_uint16(uint16 x);
uint16 BUILTIN_CONST convert_uint16(int16 x);
uint16 BUILTIN_CONST convert_uint16(ulong16 x);
ulong16 BUILTIN_CONST convert_ulong16(uint16 x);
ulong16 BUILTIN_CONST convert_ulong16(ulong16 x);
float16 BUILTIN_CONST convert_float16(uchar16 x);
float16 BUILTIN_CONST convert_float16(ushort16 x);
float16 BUILTIN_CONST convert_float16(int16 x);
uchar BUILTIN_CONST convert_uchar_sat_rte(float x);
ushort BUILTIN_CONST convert_ushort_sat_rte(float x);
uchar16 BUILTIN_CONST convert_uchar16_sat_rte(float16 x);
ushort16 BUILTIN_CONST convert_ushort16_sat_rte(float16 x);

void BUILTIN vstore16(uint16 x, size_t offset, __global uint *p);
void BUILTIN vstore16(ulong16 x, size_t offset, __global ulong *p);
