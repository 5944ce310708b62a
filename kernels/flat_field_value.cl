/* Appended to common.cl; before flat_field_rows.cl or flat_field_items.cl. The corrected level of one sample.
 *
 * Exactness: see flat_field_rows.cl. The product of 8-bit samples has 32 bits, plus 2^19 too.
 */
#if SAMPLE_BYTES == 1
typedef ushort dark_t;
#else
typedef uint dark_t;
#endif

static uint correct_value(uint s, uint dark, uint gain, uint most)
{
    const uint x = max(s << 8, dark) - dark;
#if SAMPLE_BYTES == 1
    return min((x * gain + (1u << 19)) >> 20, most);
#else
    return min(((x >> 12) * gain + (((x & 0xfffu) * gain + (1u << 19)) >> 12)) >> 8, most);
#endif
}
