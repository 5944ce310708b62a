/* Sums of products of four bytes, and permutations of bytes: NVIDIA=1 uses instructions of NVIDIA's (compute capability 6.1
 * and later) that OpenCL C does not name. */
#ifndef NVIDIA
#define NVIDIA 0
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
#else
static uint byte_of(uint word, int i) { return (word >> (8 * i)) & 0xffu; }
static uint dot4(uint bytes, uint weights, uint acc)
{
    for (int i = 0; i < 4; i++)
        acc += byte_of(bytes, i) * byte_of(weights, i);
    return acc;
}
static uint permute(uint a, uint b, uint select)
{
    uint bytes = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = (int)(select >> (4 * i)) & 7;
        bytes |= byte_of(digit < 4 ? a : b, digit & 3) << (8 * i);
    }
    return bytes;
}
#endif
