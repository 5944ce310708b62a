/* NVIDIA instructions (compute capability 6.1 and later) that OpenCL C does not name; NVIDIA=0 leaves them out. */
#ifndef NVIDIA
#define NVIDIA 1
#endif
#if NVIDIA
#define HAS_DOT4 1

/* acc plus the sum of the products of four bytes. */
static uint dot4(uint bytes, uint weights, uint acc)
{
    uint sum;
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(bytes), "r"(weights), "r"(acc));
    return sum;
}

/* Picks four bytes: digits 0..3 of `select` name bytes of a, digits 4..7 bytes of b. */
static uint permute(uint a, uint b, uint select)
{
    uint bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(select));
    return bytes;
}
#endif
