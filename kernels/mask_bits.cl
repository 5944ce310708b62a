/* Packs the results of comparisons; appended to files of any kind. */
/* Packs 0 or -1 per pixel into a bit per pixel: byte 0 holds the first 8 pixels, the first one in the
 * highest bit. */
static uint pack_bits16(char16 marked)
{
#ifdef __SSE2__
    typedef char bytes16_t __attribute__((vector_size(16)));
    const char16 reversed = marked.s76543210fedcba98;
    return (uint)__builtin_ia32_pmovmskb128((bytes16_t)reversed);
#else
    /* The product gathers the lowest bits of 8 bytes in its highest byte. */
    const ulong2 lanes = as_ulong2(marked) & 0x0101010101010101UL;
    const ulong2 bits = (lanes * 0x8040201008040201UL) >> 56;
    return (uint)bits.x | ((uint)bits.y << 8);
#endif
}
