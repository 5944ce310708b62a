/* Instructions of NVIDIA's GPUs (compute capability 6.1 and later) that OpenCL C has no name for. */
#define HAS_DOT4 1

/* Sum of the products of bytes, and acc. */
static uint dot4(uint bytes, uint weights, uint acc)
{
    uint sum;
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(bytes), "r"(weights), "r"(acc));
    return sum;
}

/* Four of the bytes of a (digits 0..3 of `select`) and b (4..7). */
static uint permute(uint a, uint b, uint select)
{
    uint bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(select));
    return bytes;
}

/* The low word of (high, low) >> shift, shift < 32. */
static uint funnel(uint low, uint high, uint shift)
{
    uint word;
    asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(low), "r"(high), "r"(shift));
    return word;
}
